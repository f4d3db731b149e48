"""What a reading says of a service: rates, lengths, bursts, and the week that follows."""

import datetime as dt
from dataclasses import dataclass, replace

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.forecaster import band, bursts, counting, kinds, lengths
from capplan.forecaster.counting import DAY_S, HOUR_S, MINUTE_S
from capplan.forecaster.seasons import WEEK
from capplan.records.forecast import Burstiness
from capplan.records.history import ClassSeen, History, Outlook
from capplan.records.trace import Counted, Floats, Reading, Seen, Trace

LABEL = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)
"""A Monday: stands for the start of a history that tells no date."""
_MOST_NAMED = 3
_MOST_INTERVALS = 200_000
_MOST_KINDS = 50


@dataclass(frozen=True)
class Wishes:
    """What the user says about the making."""

    version: str
    rule: kinds.Rule
    step_s: float | None = None
    """None for one that suits the history. [s]"""
    ahead_h: int = WEEK
    """How far the outlook reaches. [h]"""
    start: dt.datetime | None = None
    """Of a history that tells no date."""
    zone: dt.tzinfo = dt.UTC
    """In which times are told."""


@dataclass(frozen=True, eq=False)
class _Measured:
    """Rates, and what only single requests or minutes tell."""

    counted: Counted
    peak_minute_over_mean: float | None
    burstiness: Burstiness | None
    caveats: list[str]


def observe(reading: Reading, wishes: Wishes) -> History:
    """The history of a reading.

    Raises:
        InputError: It is shorter than an interval, or classes cannot be told apart as wished.
    """
    if reading.requests is not None:
        _check_kinds(reading.requests.kinds, wishes.rule)
    requests = None if reading.requests is None else kinds.sorted_out(reading.requests, wishes.rule)
    measured = (
        _of_rates(reading.rates, requests, wishes)
        if reading.rates is not None
        else _of_requests(_there(requests), wishes)
    )
    counted = measured.counted
    _check(counted)
    total = counting.total(counted)
    if not np.nansum(total) > 0:
        raise InputError([Complaint("", "history", "holds no requests in whole intervals")])
    start = _start(counted, wishes)
    return History(
        capplan=wishes.version,
        files=reading.files,
        start=start,
        dated=counted.dated,
        step_s=counted.step_s,
        rate_per_s=_known(total),
        class_rates_per_s={
            name: _known(line) for name, line in zip(counted.kinds, counted.rate_per_s, strict=True)
        },
        classes=_classes(counted),
        peak_minute_over_mean=measured.peak_minute_over_mean,
        burstiness=measured.burstiness,
        week_over_week=_week_over_week(total, counted.step_s),
        outlook=_outlook(total, counted.step_s, start, wishes.ahead_h),
        caveats=(*reading.caveats, *measured.caveats, *_said(counted, total, start)),
    )


def _check(counted: Counted) -> None:
    count = counted.rate_per_s.shape[1]
    if count > _MOST_INTERVALS:
        rule = f"must make at most {_MOST_INTERVALS:,} intervals: name a longer --step"
        raise InputError([Complaint("", "history", rule, f"{count:,}")])


def _check_kinds(names: tuple[str, ...], rule: kinds.Rule) -> None:
    if rule.by == "column" and len(names) > _MOST_KINDS:
        text = f"the column must tell at most {_MOST_KINDS} classes apart"
        remedy = "--classes one, or lengths:N"
        raise InputError([Complaint("--classes", "", text, f"{len(names):,}", remedy)])


def _there(requests: Trace | None) -> Trace:
    assert requests is not None  # a reading has requests, rates or both
    return requests


def _of_requests(trace: Trace, wishes: Wishes) -> _Measured:
    span = float(trace.arrival_s[-1] - trace.arrival_s[0])
    step = wishes.step_s or counting.step_for(span)
    found = counting.binned(trace, step, lengths.of_trace(trace))
    counted = found.counted
    intervals = counted.rate_per_s.shape[1]
    highest = float(counting.total(counted).max())
    inside = trace.arrival_s[trace.arrival_s < counted.start_s + step * intervals]
    minute = min(MINUTE_S, step)
    minutes = counting.binned(replace(trace, kind=np.zeros(len(trace), dtype=np.int64)), minute, ())
    caveats = []
    if found.left_out:
        part = found.left_out / len(trace)
        caveats.append(f"{found.left_out:,} requests ({part:.1%}) lie in incomplete intervals")
    return _Measured(
        counted,
        bursts.peak_minute_over_mean(minutes.counted, highest),
        bursts.burstiness(inside, counted.start_s, step, intervals),
        caveats,
    )


def _of_rates(rates: Counted, requests: Trace | None, wishes: Wishes) -> _Measured:
    """Rates as they are told, with the lengths of requests that stand beside them."""
    span = rates.rate_per_s.shape[1] * rates.step_s
    step = wishes.step_s or max(rates.step_s, counting.step_for(span))
    counted = counting.coarser(rates, step)
    if requests is not None:
        whole = kinds.sorted_out(requests, kinds.Rule("one"))
        (together,) = lengths.of_trace(whole)
        own = dict(zip(requests.kinds, lengths.of_trace(requests), strict=True))
        seen = tuple(
            one or own.get(name, together)
            for one, name in zip(counted.seen, counted.kinds, strict=True)
        )
        counted = replace(counted, seen=seen)
    minutes = None
    if rates.step_s <= MINUTE_S and MINUTE_S % rates.step_s == 0:
        highest = float(np.nanmax(counting.total(counted)))
        minutes = bursts.peak_minute_over_mean(counting.coarser(rates, MINUTE_S), highest)
    return _Measured(counted, minutes, None, [])


def _start(counted: Counted, wishes: Wishes) -> dt.datetime:
    if counted.dated:
        return dt.datetime.fromtimestamp(round(counted.start_s), dt.UTC).astimezone(wishes.zone)
    label = wishes.start or LABEL
    return label + dt.timedelta(seconds=round(counted.start_s))


def _known(line: Floats) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else value for value in line.tolist())


def _classes(counted: Counted) -> tuple[ClassSeen, ...]:
    """Classes with requests, the busiest first."""
    means = np.nanmean(counted.rate_per_s, axis=1)
    order = np.argsort(-means, kind="stable")
    return tuple(
        _class(counted.kinds[at], float(means[at] / means.sum()), counted.seen[at])
        for at in order.tolist()
        if means[at] > 0
    )


def _class(name: str, share: float, seen: Seen | None) -> ClassSeen:
    return ClassSeen(
        name=name,
        share=min(share, 1.0),
        requests=0.0 if seen is None else seen.count,
        input_tokens=None if seen is None else lengths.described(seen.prompt, seen.count),
        output_tokens=None if seen is None else lengths.described(seen.output, seen.count),
        length_correlation=None if seen is None else seen.correlation,
        prefix_reuse=None if seen is None else seen.prefix_reuse,
    )


def _week_over_week(total: Floats, step_s: float) -> float | None:
    week = round(WEEK * HOUR_S / step_s)
    if len(total) < 2 * week:
        return None
    before = float(np.nanmean(total[-2 * week : -week]))
    return float(np.nanmean(total[-week:])) / before if before > 0 else None


def _outlook(total: Floats, step_s: float, start: dt.datetime, hours: int) -> Outlook | None:
    """The band of the hours that follow, where there is history enough."""
    if step_s != HOUR_S or band.steady_days(total) < band.FEWEST_DAYS:
        return None
    found = band.ahead(total, hours)
    quantiles = {
        name: tuple(line.tolist()) for name, line in zip(band.NAMES, found.quantiles, strict=True)
    }
    follows = start + dt.timedelta(seconds=step_s * len(total))
    return Outlook(
        start=follows, method=found.method, quantiles_per_s=quantiles, back_test=found.back_test
    )


def _said(counted: Counted, total: Floats, start: dt.datetime) -> list[str]:
    """What the history cannot tell, and its empty and unknown intervals."""
    span = len(total) * counted.step_s
    lines = []
    if span < DAY_S:
        hours = span / HOUR_S
        lines.append(f"{hours:.3g} h of history: it has no shape of the day, and none was invented")
    elif span < 7 * DAY_S:
        days = span / DAY_S
        lines.append(f"{days:.3g} days of history: it has no shape of the week")
    if not counted.dated:
        lines.append("the sources tell no date: the start is a label, weekdays are unknown")
    lines += [
        line
        for name, seen in zip(counted.kinds, counted.seen, strict=True)
        if seen
        for line in _left_out(name, seen)
    ]
    lines += _where(total == 0, "without a request", start, counted.step_s)
    lines += _where(np.isnan(total), "that nobody counted", start, counted.step_s)
    return lines


def _left_out(name: str, seen: Seen) -> list[str]:
    """Means that contradict the quantiles beside them."""
    samples = (("prompt", seen.prompt), ("answer", seen.output))
    return [
        f"{name} {what}: a mean of {lengths.mean_of(sample):,.0f} tokens was seen and left out, "
        "for the quantiles give another"
        for what, sample in samples
        if lengths.described(sample, seen.count).mean_tokens is None
    ]


def _where(found: Floats, what: str, start: dt.datetime, step_s: float) -> list[str]:
    places = np.flatnonzero(found).tolist()
    if not places:
        return []
    moments = [
        (start + dt.timedelta(seconds=place * step_s)).strftime("%Y-%m-%d %H:%M")
        for place in places[:_MOST_NAMED]
    ]
    more = ", …" if len(places) > _MOST_NAMED else ""
    return [f"{len(places)} intervals {what}: {', '.join(moments)}{more}"]
