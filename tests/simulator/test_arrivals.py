"""Arrival processes and percentiles against what is known of them."""

import numpy as np
import pytest

from capplan.simulator import arrivals

COUNT = 200_000


def gaps(times):
    return np.diff(times)


def test_poisson_gaps_have_mean_and_spread_one() -> None:
    seen = gaps(arrivals.poisson(COUNT, np.random.default_rng(0)))
    assert seen.mean() == pytest.approx(1, rel=0.01)
    assert seen.std() == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("cv", [0.5, 2.0, 4.0])
def test_gamma_gaps_have_the_spread_asked_for(cv) -> None:
    seen = gaps(arrivals.gamma(COUNT, cv, np.random.default_rng(1)))
    assert seen.mean() == pytest.approx(1, rel=0.03)
    assert seen.std() == pytest.approx(cv, rel=0.03)


def test_modulated_arrivals_keep_the_mean_and_the_peak() -> None:
    rng = np.random.default_rng(2)
    times = arrivals.modulated(COUNT, 1.6, 0.3, burst_requests=2_000, rng=rng)
    assert np.all(np.diff(times) >= 0)
    assert len(times) == COUNT
    counts = np.bincount((times / 100).astype(int))[:-1]
    # Windows of 100 are much shorter than bursts: counts gather around 160 and 74.
    assert counts.mean() == pytest.approx(100, rel=0.1)
    assert np.mean(counts > 120) == pytest.approx(0.3, abs=0.1)
    assert counts[counts > 120].mean() == pytest.approx(160, rel=0.05)


def test_bursts_that_bring_everything_leave_silence_between() -> None:
    times = arrivals.modulated(1_000, 2.0, 0.5, 50, np.random.default_rng(3))
    assert gaps(times).max() > 5


def test_a_trace_keeps_its_shape_at_unit_mean() -> None:
    np.testing.assert_allclose(arrivals.trace([30.0, 10.0, 16.0]), [0.0, 0.6, 2.0])
