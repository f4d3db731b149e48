"""Overlaps and widths that were published."""

import numpy as np
import pytest
from scipy.optimize import brentq

from capplan.physics.expert_entropy import missed
from capplan.physics.experts import Routing, distinct_experts
from capplan.physics.overlaps import mean_overlap, routing_by_lag

COHERE_LAGS = (0.381, 0.329, 0.301, 0.299)
"""https://cohere.com/blog/mixture-of-experts-models-get-more-from-speculative-decoding."""


@pytest.mark.parametrize("across", [8 / 128, 0.118])
def test_overlaps_by_lag_give_the_distinct_experts_that_cohere_counted(across: float) -> None:
    routing = Routing(128, 8, across, within=mean_overlap(COHERE_LAGS, query_tokens=4))
    assert distinct_experts(routing, 1, 4) == pytest.approx(20.36, rel=0.03)


@pytest.mark.parametrize(
    ("chosen", "seen", "elsewhere"),
    [(8, (8, 39.4), (15, 58.9)), (10, (5, 36.1), (16, 67.6))],
    ids=["Laguna XS 2.1", "Laguna S 2.1"],
)
def test_one_published_width_predicts_another(
    chosen: int, seen: tuple[int, float], elsewhere: tuple[int, float]
) -> None:
    # Models of 256 experts; counts of distinct experts that adjacent tokens activate.
    def routing(within: float) -> Routing:
        return Routing(256, chosen, chosen / 256, within)

    within = brentq(
        lambda within: float(distinct_experts(routing(within), 1, seen[0])) - seen[1],
        chosen / 256, 0.999,
    )  # fmt: skip
    found = distinct_experts(routing(within), 1, elsewhere[0])
    assert found == pytest.approx(elsewhere[1], rel=0.10)


def test_overlaps_by_lag_taken_one_by_one_come_closer_still() -> None:
    routing = routing_by_lag(128, 8, 0.118, COHERE_LAGS)
    assert distinct_experts(routing, 1, 1) == pytest.approx(8, rel=1e-6)
    assert distinct_experts(routing, 1, 2) == pytest.approx(16 - 8 * 0.381, rel=1e-4)
    assert distinct_experts(routing, 1, 4) == pytest.approx(20.36, rel=0.015)


def test_a_chain_without_memory_beyond_a_step_is_counted_as_it_runs() -> None:
    # A Markov chain supposes nothing beyond its first lag, but for its two ends: these may differ
    # from its middle where means over the whole are all that is known.
    stay, popular, tokens = 0.4, 0.1, 5
    lags = tuple(stay**lag for lag in range(1, tokens))
    leave = popular * (1 - stay)
    expected = (1 - popular) * (1 - leave) ** (tokens - 1)
    assert missed(np.array([popular]), lags, tokens) == pytest.approx([expected], rel=2e-3)


def test_no_correlation_is_independence() -> None:
    found = missed(np.array([0.01, 0.3, 0.9]), (0.0, 0.0, 0.0), 4)
    np.testing.assert_allclose(found, [0.99**4, 0.7**4, 0.1**4], rtol=1e-7)


def test_overlaps_by_lag_that_contradict_one_another_are_refused() -> None:
    with pytest.raises(ValueError, match="no way of choosing experts"):
        missed(np.array([0.1]), (0.9, -0.1), 3)
    with pytest.raises(ValueError, match="say nothing of 6 tokens"):
        distinct_experts(routing_by_lag(128, 8, 0.118, COHERE_LAGS), 1, 6)


def test_two_tokens_are_one_pair() -> None:
    assert mean_overlap(COHERE_LAGS, query_tokens=2) == 0.381


def test_overlaps_that_do_not_reach_are_refused() -> None:
    with pytest.raises(ValueError, match="6 tokens lie up to 5 apart; the overlaps reach 4"):
        mean_overlap(COHERE_LAGS, query_tokens=6)
