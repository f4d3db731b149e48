"""The tables of a profile, read off a composed deployment on a grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from capplan.composer import power
from capplan.composer.band import Band, experts_of
from capplan.composer.experts import assumed_routing
from capplan.composer.grid import Grid
from capplan.physics.experts import distinct_experts
from capplan.physics.load import Load, decode_load, prefill_load
from capplan.physics.surface import Array
from capplan.records.caveat import Origin, Source
from capplan.records.profile import (
    MixedCell,
    MixedTable,
    PrefillCell,
    PrefillTable,
    StepCell,
    StepTable,
)

ELSEWHERE: Final = "Sources and the meaning of low_s and high_s stand with the steps."
BOUNDS: Final = "Some cells exceed what the KV cache holds; they only bound interpolation."


@dataclass(frozen=True)
class Tables:
    """What a plan reads step times from."""

    steps: StepTable
    mixed: MixedTable
    prefill: PrefillTable


@dataclass(frozen=True)
class Tabulated:
    """What is tabulated, and what is said of it."""

    band: Band
    grid: Grid
    gpu: str
    tdp_w: float
    versions: dict[str, str]

    def tables(self) -> Tables:
        """All three tables; cells outside the operator tables are left out."""
        mixed = self._mixed()
        return Tables(self._steps(self._largest(mixed)), mixed, self._prefill())

    def _largest(self, mixed: MixedTable) -> Array:
        """Largest batch, by query tokens, at which every chunk is known beside it. [widths].

        A plan reads what chunks add at every batch that it reads steps at.
        """
        held: dict[tuple[int, int], int] = {}
        for row in mixed.rows:
            held[row.query_tokens, row.batch] = held.get((row.query_tokens, row.batch), 0) + 1
        whole = [place for place, chunks in held.items() if chunks == len(self.grid.chunks)]
        widths = sorted({query for query, _ in held})
        most = [max((b for q, b in whole if q == query), default=0) for query in widths]
        return np.interp(self.grid.query_tokens, widths, most)

    def _steps(self, largest: Array) -> StepTable:
        grid = self.grid
        cells = np.array(list(product(grid.batches, grid.contexts, grid.query_tokens)))
        load = decode_load(*cells.T)
        watts = self.tdp_w * power.part_of_tdp(self.gpu, self.band.kind, load.decode_tokens)
        touched = self._distinct(load)
        most = dict(zip(grid.query_tokens, largest, strict=True))
        rows = tuple(
            StepCell(
                batch=int(batch), context_tokens=int(context), query_tokens=int(query),
                step_s=time, low_s=low, high_s=high,
                power_w=round(float(watt)), distinct_experts=experts,
            )
            for (batch, context, query), (time, low, high), watt, experts in zip(
                cells, self._times(load), watts, touched, strict=True
            )
            if np.isfinite(time) and batch <= most[int(query)]
        )  # fmt: skip
        sources = (*self.band.middle.sources, power.SOURCE)
        return StepTable(origin=self._origin(BOUNDS, sources), rows=rows)

    def _mixed(self) -> MixedTable:
        grid = self.grid
        axes = grid.doubled_batches, grid.mixed_contexts, grid.mixed_query_tokens, grid.chunks
        cells = np.array(list(product(*axes)))
        rows = tuple(
            MixedCell(
                batch=int(batch), context_tokens=int(context), query_tokens=int(query),
                prefill_tokens=int(chunk), step_s=time, low_s=low, high_s=high,
            )
            for (batch, context, query, chunk), (time, low, high) in zip(
                cells, self._times(decode_load(*cells.T)), strict=True
            )
            if np.isfinite(time)
        )  # fmt: skip
        note = "The chunk begins its prompt: nothing of it is cached."
        return MixedTable(origin=self._origin(note), rows=rows)

    def _prefill(self) -> PrefillTable:
        cells = np.array(list(product(self.grid.prefill_tokens, self.grid.cached_tokens)))
        rows = tuple(
            PrefillCell(
                tokens=int(tokens), cached_tokens=int(cached),
                step_s=time, low_s=low, high_s=high, power_w=round(power.PREFILL * self.tdp_w),
            )
            for (tokens, cached), (time, low, high) in zip(
                cells, self._times(prefill_load(*cells.T)), strict=True
            )
            if np.isfinite(time)
        )  # fmt: skip
        note = f"Power is assumed, {power.PREFILL:.2f} of TDP."
        return PrefillTable(origin=self._origin(note), rows=rows)

    def _times(self, load: Load) -> list[tuple[float, float, float]]:
        """Time with its ends [s], in four digits."""
        columns = [[digits(value) for value in column] for column in self.band.at(load)]
        return list(zip(*columns, strict=True))

    def _distinct(self, load: Load) -> Sequence[float | None]:
        shape = experts_of(self.band.middle.asked.model)
        if shape is None:
            return [None] * load.batch.size
        routing = self.band.middle.asked.routing or assumed_routing(shape)
        touched: Array = distinct_experts(routing, load.batch, load.query_tokens)
        return [digits(value) for value in touched]

    def _origin(self, note: str, sources: tuple[Source, ...] = ()) -> Origin:
        """Sources stand with the steps alone: the other tables rest on the same."""
        return Origin(
            kind="composed",
            machine=f"{self.gpu}, by NVIDIA's tables; not run as a whole",
            versions=self.versions,
            sources=sources,
            note=f"{self.band.note} {note}" if sources else f"{note} {ELSEWHERE}",
        )


def digits(value: float) -> float:
    """Four digits: more than the tables are worth."""
    return float(f"{value:.4g}")
