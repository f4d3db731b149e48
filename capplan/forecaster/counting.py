"""Requests to rates, interval by interval."""

import math
from dataclasses import dataclass, replace

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.records.trace import Counted, Floats, Seen, Trace

HOUR_S, DAY_S = 3600.0, 86_400.0
MINUTE_S = 60.0
_MOST_INTERVALS = 6_000_000
"""Ten years of minutes; a plan takes fewer."""
_WHOLE = 0.01
"""An interval that lacks less than this part of itself at an end of the history is complete."""


@dataclass(frozen=True, eq=False)
class Binned:
    """Whole intervals of a trace, and what lies outside them."""

    counted: Counted
    left_out: int
    """Requests in the incomplete last interval, and first where intervals keep to the clock."""


def step_for(span_s: float) -> float:
    """An interval that suits a history: hours from a day on, minutes below an hour [s]."""
    if span_s >= DAY_S:
        return HOUR_S
    return 300.0 if span_s >= HOUR_S else MINUTE_S


def binned(trace: Trace, step_s: float, seen: tuple[Seen | None, ...]) -> Binned:
    """Rates of a trace's classes.

    Intervals keep to the clock where the trace tells the date and lasts a day, else they begin with
    the first request. Incomplete ones at the ends are left out.

    Raises:
        InputError: The trace is shorter than one interval.
    """
    first, last = float(trace.arrival_s[0]), float(trace.arrival_s[-1])
    begin = first
    if trace.dated and last - first >= DAY_S:
        begin = math.ceil(first / step_s - _WHOLE) * step_s
    intervals = int((last - begin) / step_s + _WHOLE)
    if intervals < 1:
        rule = f"must be longer than one interval of {step_s:g} s: name a shorter --step"
        raise InputError([Complaint("", "history", rule, f"{last - first:.1f} s")])
    if intervals > _MOST_INTERVALS:
        rule = f"must make at most {_MOST_INTERVALS:,} intervals: name a longer --step"
        raise InputError([Complaint("", "history", rule, f"{intervals:,}")])
    place = np.floor((trace.arrival_s - begin) / step_s).astype(np.int64)
    inside = (place >= 0) & (place < intervals)
    flat = trace.kind[inside] * intervals + place[inside]
    counts = np.bincount(flat, minlength=len(trace.kinds) * intervals)
    rates = counts.reshape(len(trace.kinds), intervals) / step_s
    counted = Counted(begin, step_s, rates, trace.kinds, trace.dated, seen)
    return Binned(counted, int((~inside).sum()))


def coarser(counted: Counted, step_s: float) -> Counted:
    """Means over longer intervals; where part of one is unknown the rest stands for it.

    Raises:
        InputError: The longer interval is no multiple of the shorter.
    """
    times = step_s / counted.step_s
    if times < 1 or not times.is_integer():
        rule = f"must be a multiple of the source's own interval, {counted.step_s:g} s"
        raise InputError([Complaint("--step", "", rule, f"{step_s:g} s")])
    skipped = 0
    if counted.dated:
        skipped = round((-counted.start_s % step_s) / counted.step_s)
    count = (counted.rate_per_s.shape[1] - skipped) // int(times)
    if count < 1:
        rule = f"must be longer than one interval of {step_s:g} s: name a shorter --step"
        raise InputError([Complaint("", "history", rule)])
    rates = counted.rate_per_s[:, skipped : skipped + count * int(times)]
    blocks = rates.reshape(len(counted.kinds), count, int(times))
    known = ~np.isnan(blocks)
    with np.errstate(invalid="ignore"):
        means = np.where(known, blocks, 0.0).sum(axis=2) / known.sum(axis=2)
    start = counted.start_s + skipped * counted.step_s
    return replace(counted, start_s=start, step_s=step_s, rate_per_s=means)


def total(counted: Counted) -> Floats:
    """Rate of all classes, nan where one is unknown. [1/s], shape (intervals,)."""
    return np.asarray(counted.rate_per_s.sum(axis=0))
