"""Published times of operators on one GPU, as columns of numbers.

A table has one row a measurement. Some columns say what ran (`kernel_source`, `gemm_dtype`), some
say on how much (`m`, `batch_size`), and `latency_s` says how long it took. Column names are
those of the publisher, so that a row can be found again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capplan.physics.roofline import Curve
from capplan.physics.surface import Array, Surface
from capplan.records.caveat import Source

TIME = "latency_s"


@dataclass(frozen=True)
class Table:
    """Rows of one operator from one file."""

    columns: Mapping[str, NDArray[Any]]
    """By name, all of one length."""
    version: str
    """Of the engine or library that was timed."""
    source: Source

    def __len__(self) -> int:
        return len(self.columns[TIME])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def values(self, name: str) -> list[Any]:
        """Distinct values of a column, rising."""
        return list(np.unique(self.columns[name]).tolist())

    def where(self, **wanted: Any) -> "Table":
        """Rows that hold these values; a column that the table lacks holds none of them."""
        kept = np.ones(len(self), dtype=bool)
        for name, value in wanted.items():
            kept &= self.columns[name] == value if name in self.columns else False
        return self.rows(kept)

    def rows(self, kept: NDArray[np.bool_]) -> "Table":
        """The rows marked."""
        columns = {name: column[kept] for name, column in self.columns.items()}
        return Table(columns, self.version, self.source)

    def said(self, what: str, rows: str) -> Source:
        """Where these rows stand."""
        where = f"{self.source.where}: {rows}"
        return Source(what=what, where=where, licence=self.source.licence)

    def curve(self, by: str, what: str, rows: str) -> Curve:
        """Time by one column; of several rows at one size the fastest counts.

        Engines choose among kernels, and choose well where timing decides.
        """
        sizes, place = np.unique(np.asarray(self.columns[by], dtype=float), return_inverse=True)
        times = np.full(sizes.size, np.inf)
        np.minimum.at(times, place, self.columns[TIME])
        return Curve(tuple(sizes.tolist()), tuple(times.tolist()), self.said(what, rows))

    def grid(self, *by: str) -> tuple[tuple[Array, ...], Array]:
        """Times on the grid that columns span, the fastest of several rows; NaN in holes.

        Returns:
            One rising axis a column, and times [len(axis) for each axis].
        """
        axes, places = [], []
        for name in by:
            axis, place = np.unique(
                np.asarray(self.columns[name], dtype=float), return_inverse=True
            )
            axes.append(axis)
            places.append(place)
        times = np.full([len(axis) for axis in axes], np.inf)
        np.minimum.at(times, tuple(places), self.columns[TIME])
        return tuple(axes), np.where(np.isinf(times), np.nan, times)

    def surface(self, *by: str) -> Surface:
        """Time by several columns, multilinear between rows."""
        return Surface(*self.grid(*by))


def joined(tables: Sequence[Table]) -> Table:
    """Rows of several tables; columns that all of them have."""
    names = set.intersection(*(set(table.columns) for table in tables))
    columns = {name: np.concatenate([table[name] for table in tables]) for name in names}
    where = ", ".join(table.source.where for table in tables)
    versions = ", ".join(table.version for table in tables)
    return Table(columns, versions, tables[0].source.model_copy(update={"where": where}))


@dataclass(frozen=True)
class Limits:
    """What a GPU is sold for; kernels reach less."""

    bandwidth_bytes_per_s: float
    bf16_flop_per_s: float
    memory_bytes: float
    gpus_per_node: int
    source: Source


@dataclass(frozen=True)
class Silicon:
    """The tables of one GPU as one engine runs it."""

    gpu: str
    """As capplan writes hardware: h200-sxm."""
    engine: str
    limits: Limits
    engines: tuple[str, ...]
    """All engines whose kernels were timed on the GPU."""
    read: Callable[[str, str], tuple[Table, ...]]
    """(engine or library, operator) -> its tables, the newest version first; () where none is."""

    def find(self, operator: str, *, engine: str = "", **wanted: Any) -> Table | None:
        """Rows of the newest version that holds any such row; None where no version does.

        Args:
            operator: Name of the table.
            engine: Of another engine or library than this one's.
            wanted: Values of columns.
        """
        for table in self.read(engine or self.engine, operator):
            if len(found := table.where(**wanted)):
                return found
        return None

    def any_engine(self, operator: str, **wanted: Any) -> Table | None:
        """Rows of all engines, each engine's newest; for kernels of libraries that all may call."""
        found = [self.find(operator, engine=engine, **wanted) for engine in self.engines]
        tables = [table for table in found if table is not None]
        return joined(tables) if tables else None
