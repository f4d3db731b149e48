"""Numbers from a trace against theory, scipy and numpy."""

import numpy as np
import pytest
from histories import lengths, trace
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from capplan.forecaster.bursts import burstiness, dispersion, peak_minute_over_mean
from capplan.forecaster.counting import binned, coarser
from capplan.forecaster.lengths import described, of_trace, quantile, rank_correlation
from capplan.physics import lengths as nodes
from capplan.records.trace import Sample

HOUR = 3600.0


def test_random_arrivals_have_dispersion_and_spread_of_one():
    arrivals = np.sort(np.random.default_rng(1).uniform(0, 20 * HOUR, 200_000))

    found = burstiness(arrivals, 0.0, HOUR, 20)

    # Standard error of a dispersion: the root of 2 over the windows, 1200 of them at 60 s.
    assert found.dispersion_1s == pytest.approx(1, abs=0.03)
    assert found.dispersion_10s == pytest.approx(1, abs=0.08)
    assert found.dispersion_60s == pytest.approx(1, abs=0.17)
    assert found.gap_cv == pytest.approx(1, abs=0.01)


def test_batches_of_k_have_dispersion_k():
    batches = np.sort(np.random.default_rng(2).uniform(0, 20 * HOUR, 20_000))

    found = dispersion(np.repeat(batches, 8), 10.0, HOUR, 20)

    assert found == pytest.approx(8, rel=0.08)  # compound Poisson: the batch's size


def test_the_days_shape_is_no_burst():
    rng = np.random.default_rng(3)
    rates = [200, 2000, 20_000] * 4
    arrivals = np.concatenate(
        [np.sort(rng.uniform(h * HOUR, (h + 1) * HOUR, n)) for h, n in enumerate(rates)]
    )

    found = burstiness(arrivals, 0.0, HOUR, len(rates))

    assert found.dispersion_10s == pytest.approx(1, abs=0.1)
    assert found.gap_cv == pytest.approx(1, abs=0.02)


def test_even_arrivals_have_none():
    found = burstiness(np.arange(0, 2 * HOUR, 0.1) + 0.05, 0.0, HOUR, 2)

    assert found.dispersion_10s == pytest.approx(0, abs=1e-9)
    assert found.gap_cv == pytest.approx(0, abs=1e-3)
    assert burstiness(np.arange(10.0), 0.0, HOUR, 1) is None


def test_the_busiest_minute_is_planned_for():
    arrivals = [*np.arange(0, 2 * HOUR, 10.0), *np.linspace(3600, 3659, 100)]
    requests = trace(np.sort(arrivals))
    hours = binned(requests, HOUR, of_trace(requests)).counted
    minutes = binned(requests, 60.0, of_trace(requests)).counted

    highest = hours.rate_per_s.max()
    factor = peak_minute_over_mean(minutes, highest)

    assert factor * highest == pytest.approx(106 / 60)
    assert peak_minute_over_mean(hours, highest) is None


@given(st.integers(0, 50))
def test_intervals_hold_every_request_but_the_last_ones(seed):
    arrivals = np.random.default_rng(seed).exponential(7, 3000).cumsum()
    requests = trace(arrivals, kinds=("a", "b"))

    found = binned(requests, 600.0, of_trace(requests))

    counted = found.counted.rate_per_s.sum() * 600.0
    assert counted + found.left_out == pytest.approx(3000)
    whole = coarser(found.counted, 1200.0)
    pairs = found.counted.rate_per_s[:, : 2 * whole.rate_per_s.shape[1]]
    assert whole.rate_per_s == pytest.approx((pairs[:, ::2] + pairs[:, 1::2]) / 2)


def test_dated_hours_keep_to_the_clock():
    begin = 1_700_000_000.0  # 22:13:20
    requests = trace(begin + np.arange(0, 30 * HOUR, 10.0), dated=True)

    counted = binned(requests, HOUR, of_trace(requests)).counted

    assert counted.start_s % HOUR == 0
    assert counted.rate_per_s.shape == (1, 29)
    assert counted.rate_per_s == pytest.approx(0.1)


def test_a_week_to_the_last_second_is_a_whole_week():
    begin = 1_715_299_200.0  # 2024-05-10 00:00
    requests = trace(begin + np.arange(0.4, 7 * 86_400, 10.0), dated=True)

    counted = binned(requests, HOUR, of_trace(requests)).counted

    assert counted.rate_per_s.shape == (1, 168)
    assert counted.rate_per_s == pytest.approx(0.1)


@given(st.integers(0, 50))
def test_rank_correlation_is_scipys(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 20, 200).astype(float)
    second = first * rng.normal(1, 1) + rng.integers(0, 20, 200)

    found = rank_correlation(first, second)

    assert found == pytest.approx(stats.spearmanr(first, second).statistic)


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=60),
    st.lists(st.floats(0.01, 0.99), min_size=1, max_size=5),
)
def test_weighted_quantiles_are_numpys_of_the_values_repeated(values, places):
    tokens, counts = np.unique(np.array(values, dtype=float), return_counts=True)
    expected = np.quantile(values, places, method="inverted_cdf")

    assert quantile(Sample(tokens, counts * 1.0), np.array(places)) == pytest.approx(expected)


def test_stored_quantiles_give_back_the_mean_and_the_tail():
    prompt, output = lengths(np.random.default_rng(4), 100_000)
    for tokens in (prompt, output, np.minimum(prompt, 2000)):
        found = described(Sample(tokens, np.ones(len(tokens))), len(tokens))

        told = {float(f"0.{name[1:]}"): value for name, value in found.quantiles.items()}
        line = nodes.quantile_nodes(told, found.max_tokens)
        assert nodes.WEIGHTS @ line == pytest.approx(tokens.mean(), rel=0.02)
        assert found.mean_tokens == pytest.approx(tokens.mean())
        assert found.max_tokens == tokens.max()


def test_few_requests_tell_no_far_quantiles():
    few = described(Sample(np.arange(1.0, 101.0), np.ones(100)), 100)

    assert {"p05", "p95"} <= set(few.quantiles)
    assert not {"p01", "p99", "p999"} & set(few.quantiles)
