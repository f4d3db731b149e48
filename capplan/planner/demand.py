"""Forecast to requests a second, interval by interval, class by class."""

import math
from collections.abc import Iterator

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.physics import lengths
from capplan.physics.surface import Array
from capplan.records.forecast import Daily, Forecast, Lengths, Rate, TimeAxis, TrafficClass
from capplan.records.plan import ClassDemand, Demand

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
_MOST_INTERVALS = 200_000
"""A year in steps of five minutes is half of that."""
_MEAN_SLACK = 0.15
"""A stated mean this far from its quantiles' own contradicts them."""


def demand(forecast: Forecast) -> Demand:
    """Requests of each class over the forecast, growth included.

    Raises:
        InputError: The forecast asks for nothing, or its statements contradict one another.
    """
    _check_intervals(forecast)
    classes = tuple(
        _class_demand(forecast, traffic, place) for place, traffic in enumerate(forecast.classes)
    )
    asked = Demand(
        forecast=forecast.name,
        start=forecast.time.start,
        step_s=forecast.time.step_s,
        peak_minute_over_mean=forecast.peak_minute_over_mean,
        classes=classes,
    )
    if not any(any(traffic.rate_per_s) for traffic in classes):
        raise InputError([_complaint(forecast, "rate", "no interval asks for anything")])
    if output_tokens(asked) < 1:
        rule = "all intervals together ask for less than one output token"
        raise InputError([_complaint(forecast, "rate", rule)])
    return asked


def _check_intervals(forecast: Forecast) -> None:
    """All rates cover the same intervals, and not so many that nobody could look at them."""
    counts = {key: _intervals(rate, forecast.time) for key, rate in _rates(forecast)}
    first, *others = counts
    same = f"must cover as many intervals as {first}, {counts[first]:,}"
    few = f"must make at most {_MOST_INTERVALS:,} intervals"
    complaints = [
        *(
            _complaint(forecast, k, same, f"{counts[k]:,}")
            for k in others
            if counts[k] != counts[first]
        ),
        *(_complaint(forecast, k, few, f"{n:,}") for k, n in counts.items() if n > _MOST_INTERVALS),
    ]
    if complaints:
        raise InputError(complaints)


def _rates(forecast: Forecast) -> Iterator[tuple[str, Rate]]:
    if forecast.rate is not None:
        yield "rate", forecast.rate
    for place, traffic in enumerate(forecast.classes):
        if traffic.rate is not None:
            yield f"classes.{place}.rate", traffic.rate


def _intervals(rate: Rate, time: TimeAxis) -> int:
    if rate.daily is not None:
        return math.ceil(rate.daily.days * DAY_S / time.step_s)
    assert rate.values_per_s is not None  # reading a forecast turns a series into values
    return len(rate.values_per_s)


def interval_alone(demand: Demand, interval: int, factor: float = 1.0) -> Demand:
    """One interval of a demand, its rates multiplied."""
    classes = tuple(
        traffic.model_copy(update={"rate_per_s": (traffic.rate_per_s[interval] * factor,)})
        for traffic in demand.classes
    )
    return demand.model_copy(update={"classes": classes})


def of_classes(demand: Demand, places: tuple[int, ...]) -> Demand:
    """Some of the classes."""
    return demand.model_copy(update={"classes": tuple(demand.classes[p] for p in places)})


def busiest_intervals(demand: Demand) -> Demand:
    """The intervals that may decide a fleet's size: the busiest of all classes and of each."""
    rates = np.array([traffic.rate_per_s for traffic in demand.classes])
    busiest = sorted({int(rates.sum(axis=0).argmax()), *rates.argmax(axis=1).tolist()})
    classes = tuple(
        traffic.model_copy(update={"rate_per_s": tuple(line[busiest].tolist())})
        for traffic, line in zip(demand.classes, rates, strict=True)
    )
    return demand.model_copy(update={"classes": classes})


def output_tokens(demand: Demand) -> float:
    """Output tokens over the whole forecast."""
    return sum(
        sum(traffic.rate_per_s) * demand.step_s * traffic.mean_output_tokens
        for traffic in demand.classes
    )


def prompt_tokens(demand: Demand) -> float:
    """Prompt tokens over the whole forecast, cached ones included."""
    return sum(
        sum(traffic.rate_per_s) * demand.step_s * traffic.mean_prompt_tokens
        for traffic in demand.classes
    )


def _class_demand(forecast: Forecast, traffic: TrafficClass, place: int) -> ClassDemand:
    rate = traffic.rate or forecast.rate
    assert rate is not None  # the record's own rule
    share = 1.0 if traffic.share is None else traffic.share
    values = np.array(_values(rate, forecast.time)) * forecast.growth * share
    prompt = _nodes(forecast, f"classes.{place}.input_tokens", traffic.input_tokens)
    output = _nodes(forecast, f"classes.{place}.output_tokens", traffic.output_tokens)
    return ClassDemand(
        name=traffic.name,
        rate_per_s=tuple(values.tolist()),
        mean_prompt_tokens=float(lengths.WEIGHTS @ prompt),
        mean_output_tokens=float(lengths.WEIGHTS @ output),
        max_prompt_tokens=traffic.input_tokens.max_tokens,
        prompt_tokens=tuple(prompt.tolist()),
        output_tokens=tuple(output.tolist()),
        prefix_reuse=traffic.prefix_reuse,
        acceptance_workload=traffic.acceptance_workload,
        acceptance=traffic.acceptance,
        objectives=traffic.objectives,
    )


def _values(rate: Rate, time: TimeAxis) -> tuple[float, ...]:
    if rate.values_per_s is not None:
        return rate.values_per_s
    assert rate.daily is not None
    return tuple(_daily(rate.daily, time))


def _daily(day: Daily, time: TimeAxis) -> list[float]:
    """Values interval by interval; by arithmetic, for dates end and days here need not."""
    midnight = time.start.replace(hour=0, minute=0, second=0, microsecond=0)
    begin = (time.start - midnight).total_seconds()
    values = []
    for interval in range(math.ceil(day.days * DAY_S / time.step_s)):
        elapsed = begin + interval * time.step_s
        hours = elapsed % DAY_S / HOUR_S
        wave = (1 + math.cos(2 * math.pi * (hours - day.peak_hour) / 24)) / 2
        level = day.trough + (1 - day.trough) * wave
        weekday = (time.start.weekday() + int(elapsed // DAY_S)) % 7
        values.append(day.peak_per_s * level * (day.weekend if weekday >= 5 else 1.0))
    return values


def _nodes(forecast: Forecast, key: str, spec: Lengths) -> Array:
    if spec.quantiles is None:
        assert spec.mean_tokens is not None
        assert spec.cv is not None
        return lengths.lognormal_nodes(spec.mean_tokens, spec.cv, spec.max_tokens)
    known = {float(f"0.{name[1:]}"): tokens for name, tokens in spec.quantiles.items()}
    nodes = lengths.quantile_nodes(known, spec.max_tokens)
    if spec.mean_tokens is None:
        return nodes
    own_mean = float(lengths.WEIGHTS @ nodes)
    if abs(own_mean / spec.mean_tokens - 1) > _MEAN_SLACK:
        rule = f"contradicts the quantiles, whose own mean is about {own_mean:.0f}"
        raise InputError(
            [_complaint(forecast, f"{key}.mean_tokens", rule, f"{spec.mean_tokens:g}")]
        )
    return lengths.with_mean(nodes, spec.mean_tokens, spec.max_tokens)


def _complaint(forecast: Forecast, key: str, rule: str, found: str | None = None) -> Complaint:
    return Complaint(place=f"forecast {forecast.name}", key=key, rule=rule, found=found)
