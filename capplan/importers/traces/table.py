"""Blocks of rows to requests, by a layout."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.importers.traces import columns
from capplan.importers.traces.clock import Clock
from capplan.importers.traces.comma import Block
from capplan.importers.traces.how import How
from capplan.importers.traces.layout import Layout
from capplan.importers.traces.part import Part
from capplan.importers.traces.prefixes import PrefixCache
from capplan.records.trace import Column, Floats


def read_table(path: Path, layout: Layout, blocks: Iterable[Block], how: How) -> Part:
    """Requests of a table.

    Args:
        path: For complaints.
        layout: Which column holds what.
        blocks: Rows with their lines, holding the layout's columns.
        how: What the user says.

    Raises:
        InputError: No rows, or more bad ones than allowed.
    """
    part = Part(str(path), layout.name, layout.caveats)
    reading = _Reading(path, layout, how, part)
    bad = how.ledger.count
    for lines, cells in blocks:
        reading.take(lines, cells)
    part.bad = how.ledger.count - bad
    part.rows += part.bad
    reading.close()
    if not part.read().kept:
        how.ledger.check()
        raise InputError([Complaint(str(path), "", "holds no request that was answered")])
    return part


class _Reading:
    """The state that passes from block to block."""

    def __init__(self, path: Path, layout: Layout, how: How, part: Part) -> None:
        self.path, self.layout, self.how, self.part = path, layout, how, part
        self.clock: Clock | None = None
        self.caches: tuple[PrefixCache, PrefixCache] | None = None
        self.prefixes: dict[str, int] = {}
        if layout.block_tokens:
            never_forgets = PrefixCache(layout.block_tokens, None)
            self.caches = (PrefixCache(layout.block_tokens, how.cache_tokens), never_forgets)

    def take(self, lines: Sequence[int], cells: dict[str, Sequence[Any]]) -> None:
        """Keeps the good rows of a block."""
        named = {name: cells[column] for name, column in self.layout.columns.items()}
        bad: dict[int, Complaint] = {}
        block = self._numbers(lines, named, bad)
        for place in sorted(bad):
            self.how.ledger.add(bad[place])
        good = np.ones(len(lines), dtype=bool)
        good[list(bad)] = False
        if "failed" in named:
            block["output"][[bool(value) for value in named["failed"]]] = 0
        self.part.rows += int(good.sum())
        self.part.add({name: values[good] for name, values in block.items()})

    def close(self) -> None:
        """Writes down what only the end of the file tells."""
        if self.clock is not None:
            self.part.dated, self.part.zoned = self.clock.dated, self.clock.zoned
        if self.caches is not None:
            shares = [cache.hit / max(cache.asked, 1) for cache in self.caches]
            self.part.hit_share, self.part.bound_share = shares

    def _numbers(
        self, lines: Sequence[int], named: dict[Any, Sequence[Any]], bad: dict[int, Complaint]
    ) -> dict[str, Column]:
        def complain(field: Any, place: int, rule: str, value: Any) -> None:
            where, key = f"{self.path}:{lines[place]}", self.layout.columns[field]
            bad.setdefault(place, Complaint(where, key, rule, columns.shown(value)))

        clock = self._clock(lines, named["arrival"])
        block: dict[str, Column] = {
            "arrival": columns.parsed(
                named["arrival"], clock.block, clock.one, partial(complain, "arrival")
            )
        }
        for field in ("prompt", "output", "cached"):
            if field in named:
                values = _present(named[field], named.get("failed"))
                block[field] = columns.parsed(
                    values, columns.tokens, columns.token, partial(complain, field)
                )
        if "cached" in block:
            for place in np.flatnonzero(block["cached"] > block["prompt"]).tolist():
                complain("cached", place, "must not exceed the prompt", named["cached"][place])
        if "class" in named:
            block["class"] = columns.codes(named["class"], self.part.kinds)
        if "prefix" in named:
            hashes = self._hashes(named["prefix"], partial(complain, "prefix"))
            block |= self._prefixes(hashes, block["prompt"])
        return block

    def _hashes(self, values: Sequence[Any], complain: columns.Complain) -> Sequence[Any]:
        """Prefixes; None where hashes are wanted and there are none."""
        if self.caches is None:
            return values
        found = [value if _are_hashes(value) else None for value in values]
        for place in (place for place, value in enumerate(found) if value is None):
            complain(place, "must be a list of hashes", values[place])
        return found

    def _clock(self, lines: Sequence[int], arrivals: Sequence[Any]) -> Clock:
        """The clock that the first arrival sets."""
        if self.clock is None:
            clock = Clock(self.layout.unit, self.how.zone)
            try:
                clock.start(arrivals[0])
            except ValueError as error:
                column, found = self.layout.columns["arrival"], columns.shown(arrivals[0])
                place = f"{self.path}:{lines[0]}"
                raise InputError([Complaint(place, column, str(error), found)]) from error
            self.clock = clock
        return self.clock

    def _prefixes(self, values: Sequence[Any], prompt: Floats) -> dict[str, Column]:
        """Which requests begin alike, and what a cache would have held of them."""
        first = [value[0] if isinstance(value, list) and value else value for value in values]
        found: dict[str, Column] = {"prefix": columns.codes(first, self.prefixes)}
        if self.caches is not None:
            found["cached"] = np.fromiter(
                self._served(values, prompt), np.float64, count=len(values)
            )
        return found

    def _served(self, values: Sequence[Any], prompt: Floats) -> Iterator[float]:
        assert self.caches is not None
        finite, bound = self.caches
        for blocks, length in zip(values, prompt.tolist(), strict=True):
            hashes = blocks if isinstance(blocks, list) else []
            bound.serve(hashes, length)
            yield finite.serve(hashes, length)


def _are_hashes(value: Any) -> bool:
    return isinstance(value, list) and {int, str}.issuperset(map(type, value))


def _present(values: Sequence[Any], failed: Sequence[Any] | None) -> Sequence[Any]:
    """Cells, with 0 where a request failed before it had the quantity."""
    if failed is None:
        return values
    return [
        0 if value is None and lost else value for value, lost in zip(values, failed, strict=True)
    ]
