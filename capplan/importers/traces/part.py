"""Requests of one file, gathered block by block."""

from dataclasses import dataclass, field

import numpy as np

from capplan.records.history import FileRead
from capplan.records.trace import Column, Trace

COLUMNS = ("arrival", "prompt", "output", "cached", "class", "prefix")


@dataclass
class Part:
    """Columns as lists of blocks, and what happened on the way."""

    place: str
    format: str
    caveats: tuple[str, ...] = ()
    columns: dict[str, list[Column]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    kinds: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    unanswered: int = 0
    bad: int = 0
    dated: bool = True
    zoned: bool | None = None
    hit_share: float | None = None
    """Blocks found in a cache of the size asked for, of all blocks."""
    bound_share: float | None = None
    """The same of a cache that never forgets."""

    def add(self, block: dict[str, Column]) -> None:
        """Keeps the requests of a block; those without an answer are counted and left out."""
        answered = block["output"] > 0
        self.unanswered += int((~answered).sum())
        for name, values in block.items():
            self.columns[name].append(values[answered])

    def column(self, name: str) -> Column:
        """A whole column; empty where nothing was kept."""
        blocks = self.columns[name]
        return np.concatenate(blocks) if blocks else np.empty(0)

    def read(self) -> FileRead:
        """What became of the rows."""
        kept = len(self.column("arrival"))
        return FileRead(
            place=self.place,
            format=self.format,
            rows=self.rows,
            kept=kept,
            bad=self.bad,
            unanswered=self.unanswered,
        )

    def trace(self) -> Trace:
        """The requests in the order of the file."""
        optional = {name: self.column(name) for name in ("cached", "prefix")}
        kinds = tuple(self.kinds) or ("all",)
        count = len(self.column("arrival"))
        kind = self.column("class") if self.kinds else np.zeros(count)
        return Trace(
            arrival_s=self.column("arrival"),
            prompt_tokens=self.column("prompt"),
            output_tokens=self.column("output"),
            kind=kind.astype(np.int64),
            kinds=kinds,
            dated=self.dated,
            cached_tokens=optional["cached"] if len(optional["cached"]) else None,
            prefix=optional["prefix"].astype(np.int64) if len(optional["prefix"]) else None,
        )
