"""The band against days that it has not seen."""

import numpy as np
import pytest
from histories import m_large
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.forecaster.band import METHODS, NAMES, PROBABILITIES, ahead, loss
from capplan.forecaster.seasons import harmonics, naive

DAY = 24
WEEK = 7 * DAY


def waves(hours, noise=0.0, seed=1):
    """A day with a weekend, and noise of the whole day and of the hour."""
    rng = np.random.default_rng(seed)
    at = np.arange(hours)
    day = np.exp(0.5 * np.sin(2 * np.pi * at / 24) - 0.2 * np.sin(2 * np.pi * at / WEEK))
    days = np.repeat(rng.normal(0, noise, hours // 24 + 1), 24)[:hours]
    return 100 * day * np.exp(days + rng.normal(0, noise, hours))


def test_the_second_week_of_m_large_from_its_first_beats_seasonal_naive():
    rate = m_large()
    first, second = rate[:WEEK], rate[WEEK:]

    found = ahead(first, WEEK)

    own = loss(second, found.quantiles)
    bars = [loss(second, method.band(first, WEEK)) for method in METHODS if method.is_naive]
    assert len(bars) == 2
    assert own < 0.95 * min(bars)
    low, high = found.quantiles[NAMES.index("p05")], found.quantiles[NAMES.index("p95")]
    assert np.mean((second >= low) & (second <= high)) > 0.8
    assert found.back_test.loss_over_naive < 1


def test_a_smooth_week_with_noise_is_covered_as_it_should_be():
    inside_50, inside_90 = [], []
    for seed in range(20):
        rate = waves(5 * WEEK, noise=0.1, seed=seed)
        found = ahead(rate[: 4 * WEEK], WEEK)
        lines = dict(zip(NAMES, found.quantiles, strict=True))
        truth = rate[4 * WEEK :]
        inside_50.append(np.mean((truth >= lines["p25"]) & (truth <= lines["p75"])))
        inside_90.append(np.mean((truth >= lines["p05"]) & (truth <= lines["p95"])))

    assert np.mean(inside_50) == pytest.approx(0.5, abs=0.08)
    assert np.mean(inside_90) == pytest.approx(0.9, abs=0.05)


def test_a_week_that_repeats_itself_is_forecast_by_repeating_it():
    rng = np.random.default_rng(3)
    rate = np.tile(rng.uniform(10, 100, WEEK), 4) * np.exp(rng.normal(0, 0.01, 4 * WEEK))

    found = ahead(rate, WEEK)

    assert found.method == "seasonal-naive, a week before"
    assert found.back_test.loss_over_naive == 1
    assert found.quantiles[NAMES.index("p50")] == pytest.approx(rate[-WEEK:], rel=0.03)


@given(st.integers(7 * 24, 30 * 24), st.integers(1, 400), st.floats(0, 0.8), st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_quantiles_rise_and_are_finite_also_over_holes(hours, far, noise, seed):
    rng = np.random.default_rng(seed)
    rate = waves(hours, noise, seed)
    rate[rng.integers(0, hours, 10)] = 0.0
    rate[rng.integers(0, hours, 10)] = np.nan

    found = ahead(rate, far).quantiles

    assert found.shape == (len(NAMES), far)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (np.diff(found, axis=0) >= -1e-9).all()


def test_a_midnight_after_which_nothing_is_known_tests_nothing():
    rate = waves(3 * WEEK)
    whole = ahead(rate, 1)
    rate[-DAY] = np.nan  # the first hour of the last of seven days held back

    holed = ahead(rate, 1)

    assert holed.method == whole.method
    # Six midnights are left, each with one hour that was or was not inside.
    for share in (holed.back_test.coverage_50, holed.back_test.coverage_90):
        assert 6 * share == pytest.approx(round(6 * share))
    assert np.isfinite(holed.back_test.loss_over_naive)
    rate[-7 * DAY :: DAY] = np.nan
    with pytest.raises(InputError, match="nothing is known of the 1 hours after any of the last 7"):
        ahead(rate, 1)


def test_less_than_a_week_makes_no_band():
    with pytest.raises(InputError, match=r"needs 7 whole days of history in a row, found 6"):
        ahead(waves(6 * 24 + 23), WEEK)


def test_harmonics_know_a_wave_that_they_have_seen():
    logs = np.log(waves(3 * WEEK))
    logs[50:60] = np.nan

    assert harmonics(logs[: 2 * WEEK], WEEK) == pytest.approx(logs[2 * WEEK :], abs=0.01)
    assert naive(24)(logs, 30).tolist() == [*logs[-24:], *logs[-24:-18]]


def test_the_loss_of_the_median_is_half_the_error():
    rate = np.array([1.0, 5.0])
    found = np.tile(rate, (len(NAMES), 1))
    only = found.copy()
    only[NAMES.index("p50")] += [2.0, -4.0]
    high = found.copy()
    high[NAMES.index("p90")] -= 1.0

    assert loss(rate, found) == 0
    assert loss(rate, only) == pytest.approx(0.5 * 3 / len(NAMES))
    assert loss(rate, high) == pytest.approx(0.9 / len(NAMES))
    assert PROBABILITIES.tolist() == [0.05, 0.25, 0.5, 0.75, 0.9, 0.95]
