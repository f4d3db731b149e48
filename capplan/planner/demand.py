"""Forecast to requests a second, interval by interval, class by class."""

import datetime as dt
import math

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.physics import lengths
from capplan.physics.surface import Array
from capplan.records.forecast import Daily, Forecast, Lengths, Rate, TimeAxis, TrafficClass
from capplan.records.plan import ClassDemand, Demand

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
_MEAN_SLACK = 0.15
"""A stated mean this far from its quantiles' own contradicts them."""


def demand(forecast: Forecast) -> Demand:
    """Requests of each class over the forecast, growth included.

    Raises:
        InputError: The forecast asks for nothing, or its statements contradict one another.
    """
    classes = tuple(_class_demand(forecast, traffic) for traffic in forecast.classes)
    intervals = {len(traffic.rate_per_s) for traffic in classes}
    if len(intervals) > 1:
        raise InputError([_complaint(forecast, "classes", "rates must cover the same intervals")])
    asked = Demand(
        start=forecast.time.start,
        step_s=forecast.time.step_s,
        peak_minute_over_mean=forecast.peak_minute_over_mean,
        classes=classes,
    )
    if output_tokens(asked) < 1:
        rule = "all intervals together ask for less than one output token"
        raise InputError([_complaint(forecast, "rate", rule)])
    return asked


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


def _class_demand(forecast: Forecast, traffic: TrafficClass) -> ClassDemand:
    rate = traffic.rate or forecast.rate
    assert rate is not None  # the record's own rule
    share = 1.0 if traffic.share is None else traffic.share
    values = np.array(_values(rate, forecast.time)) * forecast.growth * share
    prompt = _nodes(forecast, f"classes.{traffic.name}.input_tokens", traffic.input_tokens)
    output = _nodes(forecast, f"classes.{traffic.name}.output_tokens", traffic.output_tokens)
    return ClassDemand(
        name=traffic.name,
        rate_per_s=tuple(values.tolist()),
        mean_prompt_tokens=float(lengths.WEIGHTS @ prompt),
        mean_output_tokens=float(lengths.WEIGHTS @ output),
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
    # Reading a forecast turns a series into values; what is left is a smooth day.
    assert rate.daily is not None
    return tuple(_daily(rate.daily, time))


def _daily(day: Daily, time: TimeAxis) -> list[float]:
    values = []
    for interval in range(math.ceil(day.days * DAY_S / time.step_s)):
        moment = time.start + dt.timedelta(seconds=interval * time.step_s)
        hours = (moment.hour * HOUR_S + moment.minute * 60 + moment.second) / HOUR_S
        wave = (1 + math.cos(2 * math.pi * (hours - day.peak_hour) / 24)) / 2
        level = day.trough + (1 - day.trough) * wave
        weekend = day.weekend if moment.weekday() >= 5 else 1.0
        values.append(day.peak_per_s * level * weekend)
    return values


def _nodes(forecast: Forecast, key: str, spec: Lengths) -> Array:
    if spec.quantiles is None:
        assert spec.mean_tokens is not None
        assert spec.cv is not None
        return lengths.lognormal_nodes(spec.mean_tokens, spec.cv, spec.max_tokens)
    known = {int(name[1:]) / 100: tokens for name, tokens in spec.quantiles.items()}
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
