"""Watts are read where a row has a place for them, and what they rest on is said.

No processor here has a meter, so one that counts its readings stands in.
"""

import dataclasses
import datetime as dt

import pytest

torch = pytest.importorskip("torch")

from capplan.profiler import device, result, sweep  # noqa: E402
from capplan.profiler.grid import Grid, Work  # noqa: E402
from capplan.profiler.maker import Maker  # noqa: E402
from capplan.profiler.model import Model  # noqa: E402
from capplan.profiler.protocol import Step  # noqa: E402
from capplan.records.architecture import Architecture, Dense, Gqa, LayerKind  # noqa: E402
from capplan.records.caveat import Source  # noqa: E402
from capplan.records.profile import MixedCell, Profile  # noqa: E402

pytestmark = pytest.mark.torch

LAYER = LayerKind(
    layers=1,
    attention=Gqa(kind="gqa", heads=2, kv_heads=1, head_size=8),
    feed_forward=Dense(kind="dense", width=16),
)
TINY = Architecture(
    version=1,
    name="tiny",
    hidden_size=16,
    vocabulary=32,
    tied_embeddings=True,
    layer_kinds=(LAYER,),
    source=Source(what="all", where="this test"),
)
WORKS = Grid((1, 2), (4,), 1, (4,), (1, 2)).works()


class CountingMeter:
    def __init__(self) -> None:
        self.readings = 0

    def mean_w(self, step: Step) -> float:
        step()
        self.readings += 1
        return 300.0

    def idle_w(self) -> float:
        return 80.0


def swept(meter: CountingMeter | None) -> tuple[device.Device, list[sweep.Cell]]:
    chosen = device.choose("cpu")  # holds torch to one thread
    if meter is not None:
        chosen = dataclasses.replace(chosen, meter=meter)
    model = Model(TINY, 16, Maker("cpu", torch.float32, 0))
    bench = sweep.Bench(model, TINY, TINY, chosen.clock, chosen.meter, runs=1)
    cells: list[sweep.Cell] = []
    sweep.sweep(bench, WORKS, cells.append)
    return chosen, cells


def profile(chosen: device.Device, cells: list[sweep.Cell], *, loaded: bool) -> Profile:
    date = dt.date(2026, 11, 30)
    return result.profile(result.Measured(chosen, "fp32", 4, TINY, TINY, loaded, date), cells)


def test_mixed_steps_cost_no_reading() -> None:
    meter = CountingMeter()
    _, cells = swept(meter)
    assert [sweep.work_of(cell) for cell in cells] == list(WORKS)
    assert meter.readings == sum(work.table != "mixed" for work in WORKS)
    assert all(c.power_w == 300 for c in cells if not isinstance(c, MixedCell))


def test_what_watts_rest_on_is_said() -> None:
    chosen, cells = swept(CountingMeter())
    fresh = profile(chosen, cells, loaded=True)
    assert "power" in {caveat.about for caveat in fresh.caveats}
    assert fresh.power is not None
    assert fresh.power.idle_w == 80
    assert fresh.power.origin.note is not None
    assert "model loaded" in fresh.power.origin.note
    resumed = profile(chosen, cells, loaded=False)
    assert resumed.power is not None
    assert resumed.power.origin.note is not None
    assert "no model loaded" in resumed.power.origin.note


def test_without_a_meter_nothing_is_said_of_power() -> None:
    made = profile(*swept(None), loaded=True)
    assert made.power is None
    assert "power" not in {caveat.about for caveat in made.caveats}


def test_the_token_budget_is_that_of_the_largest_step_measured() -> None:
    chosen, cells = swept(None)
    made = profile(chosen, cells, loaded=True)
    assert made.limits.max_batched_tokens == 2 * 2 + 4
    largest = Work(2, 4, 2, 4)
    less = [cell for cell in cells if sweep.work_of(cell) != largest]
    assert profile(chosen, less, loaded=True).limits.max_batched_tokens == 2 * 1 + 4
