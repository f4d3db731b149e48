"""Spread and intervals against requests whose chances are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics.request_spread import bootstrap_shares, per_request_sd

CHANCE = np.array([0.7, 0.6, 0.6, 0.5])


def simulated(spread: float, requests: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of requests whose chances at every position are shifted alike."""
    rng = np.random.default_rng(seed)
    rounds = rng.integers(20, 120, size=requests)
    shift = rng.normal(0, spread, size=requests)
    accepted = np.zeros((requests, len(CHANCE)), dtype=int)
    for request in range(requests):
        alive = rounds[request]
        for position, chance in enumerate(CHANCE):
            alive = rng.binomial(alive, np.clip(chance + shift[request], 0, 1))
            accepted[request, position] = alive
    return rounds, accepted


@pytest.mark.parametrize("spread", [0.05, 0.1, 0.15])
def test_the_spread_comes_back(spread: float) -> None:
    found = [per_request_sd(*simulated(spread, 60, seed)) ** 2 for seed in range(60)]
    # Sixty estimates from sixty requests each: their mean is known to 2.5 % of itself. Late
    # positions see more of the requests that keep more, which takes 8 % off a spread of 0.15.
    assert np.sqrt(np.mean(found)) == pytest.approx(spread, rel=0.1)


def test_counting_noise_alone_looks_like_spread_until_it_is_taken_out() -> None:
    rounds, accepted = simulated(0.0, 400, seed=5)
    naive = np.std(accepted[:, 0] / rounds)
    assert naive > 0.05
    assert per_request_sd(rounds, accepted) < 0.02


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    truth = np.mean(
        [a.sum(axis=0) / r.sum() for r, a in (simulated(0.12, 4000, s) for s in range(3))], axis=0
    )
    held, by_tokens = [], []
    for seed in range(200):
        rounds, accepted = simulated(0.12, 60, seed + 10)
        interval = bootstrap_shares(rounds, accepted, seed)
        held.append((interval.low <= truth) & (truth <= interval.high))
        share = accepted.sum(axis=0) / rounds.sum()
        half = 1.96 * np.sqrt(share * (1 - share) / rounds.sum())
        by_tokens.append(np.abs(share - truth) <= half)
    # 95 % less what percentiles of sixty requests lack; binomial error of 200 draws is 1.5 %.
    assert np.mean(held) == pytest.approx(0.935, abs=0.035)
    assert np.mean(by_tokens) < 0.6  # why rounds must not be taken for the sample


@given(st.integers(1, 50), st.integers(1, 4))
def test_requests_that_are_alike_have_no_spread(rounds: int, positions: int) -> None:
    accepted = np.tile([rounds // (position + 1) for position in range(1, positions + 1)], (5, 1))
    counts = np.full(5, rounds)
    assert per_request_sd(counts, accepted) == 0
    interval = bootstrap_shares(counts, accepted, seed=0)
    assert np.allclose(interval.low, interval.high)


def test_one_request_has_no_spread_to_measure() -> None:
    with pytest.raises(ValueError, match="two of them"):
        per_request_sd([10], [[5]])


def test_requests_that_keep_all_or_nothing_scatter_as_far_as_chances_can() -> None:
    # Two of three tries were kept: a variance of 2/3 times 1/3, where the moments give 4/3.
    assert per_request_sd([2, 1], [[2], [0]]) == pytest.approx(np.sqrt(2 / 9))
