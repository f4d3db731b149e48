"""On a processor, too, a sparse model's step costs what its experts and its tokens cost."""

import itertools
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from capplan.files.reader import read  # noqa: E402
from capplan.physics.experts import distinct_experts, independent_routing  # noqa: E402
from capplan.profiler.clocks import CpuClock  # noqa: E402
from capplan.profiler.grid import Work  # noqa: E402
from capplan.profiler.maker import Maker  # noqa: E402
from capplan.profiler.model import Model  # noqa: E402
from capplan.records.architecture import Architecture, Moe  # noqa: E402

pytestmark = pytest.mark.torch

CONTEXT = 64
BATCHES = (1, 2, 3, 4, 6, 8, 16)
QUERIES = (1, 2, 3, 4, 6)
PASSES = 4
"""Passes over the whole grid: a neighbour's burst spoils one pass of many cells, not all of one."""


@dataclass(frozen=True)
class Observed:
    batch: np.ndarray
    tokens: np.ndarray
    experts: np.ndarray
    time_s: np.ndarray


@pytest.fixture(scope="module")
def architecture() -> Architecture:
    return read(Path(__file__).parents[2] / "models" / "bench-moe-128e.yaml", Architecture)


@pytest.fixture(scope="module")
def observed(architecture: Architecture) -> Observed:
    torch.set_num_threads(1)
    model = Model(architecture, max(BATCHES) * CONTEXT, Maker("cpu", torch.float32, seed=0))
    works = [Work(batch, CONTEXT, query) for batch, query in itertools.product(BATCHES, QUERIES)]
    steps = [model.step(work) for work in works]
    experts = [model.distinct_experts(step) for step in steps]
    clock = CpuClock()
    best = np.full(len(works), np.inf)
    for number in range(PASSES):
        for cell in random.Random(number).sample(range(len(works)), len(works)):
            best[cell] = min(best[cell], clock.time(steps[cell]))
    return Observed(
        batch=np.array([work.batch for work in works]),
        tokens=np.array([work.tokens for work in works]),
        experts=np.array(experts, dtype=float),
        time_s=best,
    )


def explained(observed: Observed, *causes: np.ndarray, where: np.ndarray | None = None) -> float:
    """Part of the times' variance that a straight line in the causes explains."""
    kept = np.ones(len(observed.time_s), dtype=bool) if where is None else where
    matrix = np.column_stack([np.ones(kept.sum()), *(cause[kept] for cause in causes)])
    times = observed.time_s[kept]
    fitted = matrix @ np.linalg.lstsq(matrix, times, rcond=None)[0]
    return 1 - float(np.square(times - fitted).sum() / np.square(times - times.mean()).sum())


def test_time_is_linear_in_distinct_experts_and_tokens(observed: Observed) -> None:
    assert explained(observed, observed.experts, observed.tokens) >= 0.98


def test_at_small_batches_experts_explain_more_than_tokens(observed: Observed) -> None:
    small = observed.batch <= 8
    by_experts = explained(observed, observed.experts, where=small)
    by_tokens = explained(observed, observed.tokens, where=small)
    assert by_experts > by_tokens


def test_routers_choose_nearly_independently(
    observed: Observed, architecture: Architecture
) -> None:
    shape = architecture.layer_kinds[0].feed_forward
    assert isinstance(shape, Moe)
    routing = independent_routing(shape.experts, shape.experts_per_token)
    expected = distinct_experts(routing, observed.tokens, 1)
    # A layer's count scatters by about 3 of 128, the mean of six by 1.2: five standard errors.
    assert np.abs(observed.experts - expected).max() < 6
    assert np.abs((observed.experts - expected).mean()) < 2


def test_a_dense_model_has_no_experts_to_count() -> None:
    dense = read(Path(__file__).parents[2] / "models" / "qwen3-0.6b.yaml", Architecture)
    tiny = dense.model_copy(
        update={
            "vocabulary": 64,
            "layer_kinds": (dense.layer_kinds[0].model_copy(update={"layers": 1}),),
        }
    )
    model = Model(tiny, 8, Maker("cpu", torch.float32, seed=0))
    assert model.distinct_experts(model.step(Work(1, 8, 1))) is None
