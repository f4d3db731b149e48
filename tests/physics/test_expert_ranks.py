"""The most loaded rank, against experts dealt out and tokens drawn."""

import numpy as np
import pytest

from capplan.physics.expert_ranks import busiest_rank, largest_normal
from capplan.physics.experts import Routing, distinct_experts, independent_routing
from capplan.physics.load import decode_load

SKEWED = Routing(128, 8, across=0.118, within=0.34)


def simulated(routing: Routing, batch: int, query: int, ranks: int) -> tuple[float, float]:
    rng = np.random.default_rng(11)
    size = (1 - routing.across) / max(routing.across - routing.density, 1e-9)
    inner = (1 - routing.within) / max(routing.within - routing.across, 1e-9)
    distinct, rows = [], []
    for _ in range(400):
        popular = rng.beta(size * routing.density, size * (1 - routing.density), routing.experts)
        popular = np.clip(popular * routing.density / popular.mean(), 1e-9, 1 - 1e-9)
        chance = rng.beta(inner * popular, inner * (1 - popular), (batch, routing.experts))
        counts = rng.binomial(query, chance).sum(axis=0).reshape(ranks, -1)
        distinct.append((counts > 0).sum(axis=1).max())
        # A token chooses exactly so many experts: the draws' total is brought to that.
        total = batch * query * routing.experts_per_token
        rows.append(counts.sum(axis=1).max() * total / max(counts.sum(), 1))
    return float(np.mean(distinct)), float(np.mean(rows))


@pytest.mark.parametrize(
    ("routing", "batch", "query", "ranks"),
    [
        (independent_routing(128, 8), 16, 1, 8),
        (SKEWED, 16, 4, 8),
        (SKEWED, 64, 1, 4),
        (SKEWED, 4, 4, 2),
    ],
)
def test_the_busiest_rank_is_as_loaded_as_in_a_simulation(
    routing: Routing, batch: int, query: int, ranks: int
) -> None:
    distinct, rows = simulated(routing, batch, query, ranks)
    found = busiest_rank(routing, decode_load(batch, 0, query), ranks)
    assert found.distinct == pytest.approx(distinct, rel=0.06)
    assert found.rows == pytest.approx(rows, rel=0.08)


def test_one_rank_has_it_all() -> None:
    load = decode_load([1, 8], 0, 4)
    found = busiest_rank(SKEWED, load, 1)
    np.testing.assert_allclose(found.distinct, distinct_experts(SKEWED, [1, 8], 4))
    np.testing.assert_allclose(found.rows, [32, 256])


def test_the_largest_of_normal_draws_is_the_tabulated_one() -> None:
    # Teichroew, "Tables of expected values of order statistics", 1956.
    for draws, expected in ((1, 0.0), (4, 1.02938), (8, 1.42360), (20, 1.86748)):
        assert largest_normal(draws) == pytest.approx(expected, abs=1e-4)


def test_experts_that_cannot_be_shared_evenly_are_refused() -> None:
    with pytest.raises(ValueError, match="3 GPUs cannot share 128 experts evenly"):
        busiest_rank(SKEWED, decode_load(1, 0, 1), 3)
