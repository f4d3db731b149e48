"""Measures cell after cell and hands each on as soon as it is done.

A model of which only some layers fit is completed by arithmetic: the sampled step's time plus, for
each kind of layer, the time of one layer alone times the layers left out. That neglects what
neighbouring layers do for one another; nothing but a larger device can tell how much.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from capplan.profiler.grid import Work
from capplan.profiler.model import Model
from capplan.profiler.power import Meter
from capplan.profiler.protocol import Clock, Timing, measure
from capplan.records.architecture import Architecture
from capplan.records.profile import MixedCell, PrefillCell, StepCell

Cell = StepCell | MixedCell | PrefillCell
Save = Callable[[Cell], None]


@dataclass(frozen=True)
class Bench:
    """A model on a device, ready to be timed."""

    model: Model
    whole: Architecture
    sampled: Architecture
    clock: Clock
    meter: Meter
    runs: int


def shuffled(works: Iterable[Work], seed: int) -> list[Work]:
    """The steps in random order, so that a drift of the machine does not look like a trend."""
    order = list(works)
    random.Random(seed).shuffle(order)  # noqa: S311
    return order


def sweep(bench: Bench, works: Iterable[Work], save: Save) -> None:
    """Measures steps in the order given.

    Args:
        bench: What is measured.
        works: The steps.
        save: Called with each cell when it is done.
    """
    for work in works:
        save(_cell(bench, work))


def _cell(bench: Bench, work: Work) -> Cell:
    step = bench.model.step(work)
    prepared = bench.clock.prepare(step)
    timing = measure(prepared, bench.clock, bench.runs)
    # Each costs a second or a pass: not where the row has no place for it.
    power_w = None if work.table == "mixed" else bench.meter.mean_w(prepared)
    experts = bench.model.distinct_experts(step) if work.table == "steps" else None
    return cell_of(work, _completed(bench, work, timing), power_w, experts)


def cell_of(work: Work, timing: Timing, power_w: float | None, experts: float | None) -> Cell:
    """The row of the profile's table that a step belongs to."""
    shared: dict[str, Any] = {
        "step_s": timing.step_s,
        "low_s": timing.low_s,
        "high_s": timing.high_s,
        "runs": timing.runs,
    }
    if work.table == "prefill":
        shared |= {"tokens": work.prefill_tokens, "cached_tokens": work.cached_tokens}
        return PrefillCell(power_w=power_w, **shared)
    shared |= {"batch": work.batch, "context_tokens": work.context_tokens}
    shared |= {"query_tokens": work.query_tokens}
    if work.table == "mixed":
        return MixedCell(prefill_tokens=work.prefill_tokens, **shared)
    return StepCell(power_w=power_w, distinct_experts=experts, **shared)


def work_of(cell: Cell) -> Work:
    """The step that a row of a table describes."""
    if isinstance(cell, PrefillCell):
        return Work(0, 0, 0, cell.tokens, cell.cached_tokens)
    chunk = cell.prefill_tokens if isinstance(cell, MixedCell) else 0
    return Work(cell.batch, cell.context_tokens, cell.query_tokens, chunk)


def _completed(bench: Bench, work: Work, timing: Timing) -> Timing:
    """Adds the layers that were left out."""
    pairs = zip(bench.whole.layer_kinds, bench.sampled.layer_kinds, strict=True)
    for kind, (whole, sampled) in enumerate(pairs):
        if whole.layers > sampled.layers:
            step = bench.clock.prepare(bench.model.kind_step(work, kind))
            alone = measure(step, bench.clock, bench.runs)
            timing = timing.plus(alone, whole.layers / sampled.layers - 1)
    return timing
