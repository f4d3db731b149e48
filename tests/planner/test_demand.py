"""Forecast to rates, by hand."""

import datetime as dt

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.planner.demand import demand, output_tokens
from capplan.planner.load import Load
from capplan.records.forecast import Daily, Forecast, Lengths, Rate
from straight import make_forecast


def changed(forecast: Forecast, **changes: object) -> Forecast:
    return forecast.model_copy(update=changes)


def test_growth_and_share_multiply_the_series():
    forecast = changed(make_forecast(rates=(10.0, 20.0)), growth=1.5)
    assert demand(forecast).classes[0].rate_per_s == (15.0, 30.0)


def test_output_tokens_are_rate_times_time_times_length():
    assert output_tokens(demand(make_forecast(rates=(10.0, 20.0), output=101.0))) == pytest.approx(
        30 * 3600 * 101
    )


def test_a_smooth_day_peaks_and_troughs_where_it_says():
    daily = Daily(peak_per_s=10.0, trough=0.25, peak_hour=15, days=7, weekend=0.5)
    forecast = changed(make_forecast(), rate=Rate(daily=daily))
    rates = np.array(demand(forecast).classes[0].rate_per_s)  # starts on a Monday at midnight
    assert len(rates) == 168
    assert rates[15] == pytest.approx(10.0)
    assert rates[3] == pytest.approx(2.5)
    assert rates[5 * 24 + 15] == pytest.approx(5.0)


def test_a_forecast_of_nothing_is_refused():
    with pytest.raises(InputError, match="no interval asks for anything"):
        demand(make_forecast(rates=(0.0, 0.0)))
    with pytest.raises(InputError, match="less than one output token"):
        demand(make_forecast(rates=(1e-300,)))


def test_a_mean_that_contradicts_its_quantiles_is_refused():
    forecast = make_forecast()
    lengths = Lengths(mean_tokens=900.0, quantiles={"p50": 100.0, "p99": 200.0}, max_tokens=1000.0)
    classes = (changed(forecast.classes[0], input_tokens=lengths),)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="contradicts the quantiles"):
        demand(changed(forecast, classes=classes))


def two_classes(first: tuple[float, ...], second: tuple[float, ...]) -> Load:
    forecast = make_forecast()
    one = forecast.classes[0].model_copy(update={"share": None, "rate": Rate(values_per_s=first)})
    two = one.model_copy(update={"name": "code", "rate": Rate(values_per_s=second)})
    return Load.of(demand(changed(forecast, rate=None, classes=(one, two))))


def test_equal_mixes_are_planned_once():
    load = two_classes((1.0, 2.0, 3.0, 0.0), (1.0, 2.0, 1.0, 0.0))
    assert load.rate_per_s.tolist() == [2.0, 4.0, 4.0, 0.0]
    mixes = load.shares[load.mix_of_interval]
    assert mixes[0] == pytest.approx([0.5, 0.5])
    assert mixes[2] == pytest.approx([0.75, 0.25])
    # An interval without traffic takes the mix of the whole: 6 of 10.
    assert mixes[3] == pytest.approx([0.6, 0.4])
    assert len(load.shares) == 3


def test_prefix_reuse_splits_the_prompt():
    forecast = make_forecast(prompt=1000.0)
    classes = (changed(forecast.classes[0], prefix_reuse=0.75),)  # type: ignore[arg-type]
    load = Load.of(demand(changed(forecast, classes=classes)))
    assert load.prefill_tokens == pytest.approx(250)
    assert load.cached_tokens == pytest.approx(750)


def test_the_time_axis_need_not_be_hours():
    forecast = make_forecast()
    axis = forecast.time.model_copy(update={"step_s": 300.0})
    daily = Rate(daily=Daily(peak_per_s=1.0, trough=0.0, peak_hour=0, days=1))
    rates = demand(changed(forecast, time=axis, rate=daily)).classes[0].rate_per_s
    assert len(rates) == 288
    assert rates[0] == 1.0
    assert dt.timedelta(seconds=300) * len(rates) == dt.timedelta(days=1)
