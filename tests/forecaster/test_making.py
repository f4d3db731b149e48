"""From a reading to a forecast, and into one that people have worked on."""

import datetime as dt

import numpy as np
import pytest
from histories import m_large, of_rates, of_requests, trace

from capplan.errors import InputError
from capplan.forecaster.kinds import Rule, sorted_out
from capplan.forecaster.make import MARK, Said, make
from capplan.forecaster.observe import Wishes, observe
from capplan.forecaster.renew import renewed
from capplan.records.forecast import Forecast
from capplan.records.trace import Trace

HOUR = 3600.0
WISHES = Wishes("0", Rule())
OBJECTIVES = {"ttft_p99_s": 2.0, "tpot_p95_s": 0.05}


def said(*names):
    return Said("f", "m", dict.fromkeys(names or ("all",), OBJECTIVES))


def test_an_hour_of_requests_makes_no_day():
    arrivals = np.random.default_rng(1).uniform(0, HOUR, 20_000)
    arrivals.sort()

    history = observe(of_requests(trace(arrivals)), WISHES)

    assert history.step_s == 60
    assert len(history.rate_per_s) == 60
    assert history.outlook is None
    assert any("no shape of the day, and none was invented" in line for line in history.caveats)
    with pytest.raises(InputError, match="needs seven whole days of hourly history"):
        make(history, said(), "f.csv", "p90")


def test_a_history_counts_every_request_by_class():
    arrivals = np.sort(np.random.default_rng(2).uniform(0, 50 * HOUR, 50_000))

    history = observe(of_requests(trace(arrivals, kinds=("a", "b"))), WISHES)
    made = make(history, said("a", "b"), "f.csv")

    hours = np.floor((arrivals - arrivals[0]) / HOUR).astype(int)
    expected = np.bincount(hours)[: len(history.rate_per_s)] / HOUR
    assert history.rate_per_s == pytest.approx(expected)
    assert made.columns["a per_s"] + made.columns["b per_s"] == pytest.approx(expected, abs=2e-6)
    seen = history.classes[0]
    assert seen.share == pytest.approx(0.5, abs=0.01)
    # The normal's 0.5 is a rank correlation of 6/pi asin(0.25) = 0.483.
    assert seen.length_correlation == pytest.approx(0.483, abs=0.03)


def test_unknown_hours_are_drawn_straight_and_said():
    rates = np.linspace(1, 2, 48)
    rates[10] = np.nan
    rates[20] = 0

    history = observe(of_rates(rates), WISHES)
    made = make(history, said(), "f.csv")

    assert history.rate_per_s[10] is None
    assert made.columns["rate_per_s"][10] == pytest.approx((rates[9] + rates[11]) / 2, abs=1e-6)
    text = "\n".join(made.forecast.caveats)
    assert "1 intervals that nobody counted: 2001-01-01 10:00" in text
    assert "1 intervals without a request: 2001-01-01 20:00" in text
    assert "drawn straight" in text


def test_the_time_to_come_is_planned_at_its_quantile_with_the_band_beside():
    shares = np.array([[0.25], [0.75]])
    reading = of_rates(m_large()[None, :] * shares, kinds=("a", "b"))
    history = observe(reading, WISHES)

    made = make(history, said("a", "b"), "f.csv", "p90")

    forecast = made.forecast
    assert forecast.time.start == history.start + dt.timedelta(hours=336)
    assert set(forecast.band.quantiles) == {"p05", "p25", "p50", "p75", "p90", "p95"}
    together = made.columns["a per_s"] + made.columns["b per_s"]
    assert together == pytest.approx(made.columns["p90_per_s"], abs=1e-5)
    assert made.columns["a per_s"] == pytest.approx(together / 4, abs=1e-5)
    assert history.week_over_week == pytest.approx(m_large()[168:].sum() / m_large()[:168].sum())


def test_what_no_source_says_is_asked_for_all_at_once():
    history = observe(of_rates(np.ones(30), seen=(None,)), WISHES)

    with pytest.raises(InputError) as caught:
        make(history, Said("f", "m", {}), "f.csv")
    assert [complaint.key for complaint in caught.value.complaints] == [
        "input_tokens",
        "objectives",
    ]


def test_rates_take_the_lengths_of_the_class_of_the_same_name():
    rates = of_rates(np.ones((2, 30)), kinds=("a", "x"), seen=(None, None)).rates
    requests = trace(np.arange(2000.0), kinds=("a", "b"))
    requests.prompt_tokens[requests.kind == 0] = 7.0
    reading = of_requests(requests)
    both = type(reading)(requests, rates, reading.files, ())

    seen = {one.name: one for one in observe(both, WISHES).classes}

    assert seen["a"].input_tokens.max_tokens == 7
    assert seen["x"].input_tokens.max_tokens > 7


def test_renewing_leaves_what_people_wrote():
    history = observe(of_rates(np.arange(1.0, 31.0)), WISHES)
    new = make(history, said(), "new.csv").forecast
    people = {
        "growth": 1.25,
        "scenarios": {"low": 0.8, "high": 1.3},
        "caveats": ("Written by hand.", MARK + "of the last time"),
        "peak_minute_over_mean": 1.4,
    }
    old = Forecast.model_validate(new.model_dump(exclude_unset=True) | people)
    theirs = old.classes[0].model_copy(update={"prefix_reuse": 0.3})
    fields = {*theirs.model_fields_set, "prefix_reuse"}
    theirs = theirs.model_construct(_fields_set=fields, **dict(theirs))
    old = Forecast.model_construct(
        _fields_set=old.model_fields_set, **(dict(old) | {"classes": (theirs,)})
    )

    found = renewed(old, new)

    assert (found.growth, found.scenarios.high) == (1.25, 1.3)
    assert found.peak_minute_over_mean == 1.4  # the history has no minutes
    assert found.classes[0].prefix_reuse == 0.3
    assert found.caveats[0] == "Written by hand."
    assert not any("of the last time" in line for line in found.caveats)
    other = new.model_copy(update={"classes": (new.classes[0].model_copy(update={"name": "b"}),)})
    with pytest.raises(InputError, match="must be those of the history"):
        renewed(old, other)


def clusters(seed):
    rng = np.random.default_rng(seed)
    prompt = np.concatenate([rng.lognormal(5, 0.3, 4000), rng.lognormal(9, 0.3, 1000)])
    output = np.concatenate([rng.lognormal(4, 0.3, 4000), rng.lognormal(6, 0.3, 1000)])
    order = rng.permutation(5000)
    made = Trace(
        arrival_s=np.arange(5000.0),
        prompt_tokens=np.ceil(prompt[order]),
        output_tokens=np.ceil(output[order]),
        kind=np.zeros(5000, dtype=np.int64),
        kinds=("all",),
        dated=False,
        prefix=np.where(order < 100, 1, 2 + order),
    )
    return made, order


def test_clusters_find_short_and_long_requests():
    requests, order = clusters(1)

    found = sorted_out(requests, Rule("lengths", 2))

    assert found.kinds == ("lengths-1", "lengths-2")
    assert np.mean((found.kind == 1) == (order >= 4000)) > 0.999
    with pytest.raises(InputError, match="at least as many different"):
        sorted_out(trace(np.arange(3.0)), Rule("lengths", 4))


def test_a_common_beginning_makes_a_class():
    requests, order = clusters(1)

    found = sorted_out(requests, Rule("prefix", 3))

    assert found.kinds == ("prefix-1", "other")
    assert ((found.kind == 0) == (order < 100)).all()
    with pytest.raises(InputError, match="how prompts begin"):
        sorted_out(trace(np.arange(9.0)), Rule("prefix", 3))
