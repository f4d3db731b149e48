"""Percentiles with intervals against series whose percentile is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics.percentiles import histogram_percentile, mean, percentile


def test_the_interval_covers_the_percentile_about_as_often_as_it_says():
    rng = np.random.default_rng(4)
    exact = -np.log(0.1)
    covered = 0
    for _ in range(300):
        found = percentile(rng.exponential(size=2_000), 0.90)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= exact <= found.high
    assert 0.90 <= covered / 300 <= 0.99


def test_correlation_widens_the_interval():
    rng = np.random.default_rng(5)
    noise = rng.exponential(size=20_000)
    slow = np.convolve(noise, np.ones(500) / 500, mode="same") * 22
    wide, narrow = (mean(values) for values in (slow, noise * slow.std() / noise.std()))
    assert wide.low is not None
    assert wide.high is not None
    assert narrow.low is not None
    assert narrow.high is not None
    assert wide.high - wide.low > 5 * (narrow.high - narrow.low)


def test_too_few_values_have_no_interval():
    found = percentile(np.array([1.0, 2.0]), 0.5)
    assert (found.value, found.low, found.high) == (1.5, None, None)
    assert percentile(np.array([]), 0.5).value == 0.0


@given(rank=st.integers(0, 4_999))
def test_a_histogram_gives_percentiles_to_a_bin(rank):
    values = np.random.default_rng(6).lognormal(-4, 1, 5_000)
    edges = np.geomspace(1e-5, 1e4, 2001)
    counts, _ = np.histogram(values, edges)
    exact = np.sort(values)[rank]
    found = histogram_percentile(edges, counts.astype(float), (rank + 0.5) / 5000)
    assert found == pytest.approx(exact, rel=0.011)


def test_an_empty_histogram_has_no_percentile():
    assert histogram_percentile(np.array([1.0, 2.0]), np.array([0.0]), 0.5) == 0.0
