"""A history and what people want of the service, to a forecast."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.forecaster.seasons import DAY
from capplan.records.caveat import Source
from capplan.records.forecast import (
    Band,
    BandQuantile,
    Forecast,
    Objective,
    Rate,
    Series,
    TimeAxis,
    TrafficClass,
)
from capplan.records.history import ClassSeen, History, Outlook
from capplan.records.trace import Floats

MARK = "Sources: "
"""Begins every caveat that a history makes; the others are people's."""
_DIGITS = 6


@dataclass(frozen=True)
class Said:
    """What no history tells."""

    name: str
    model: str
    objectives: dict[str, dict[Objective, float]]
    """By class. [s]"""
    workloads: dict[str, str] = field(default_factory=dict)
    """Which of a profile's acceptance tables describes a class."""


@dataclass(frozen=True, eq=False)
class Made:
    """A forecast, and the columns of the file that its series stand in."""

    forecast: Forecast
    columns: dict[str, Floats]
    """[1/s]"""


def make(history: History, said: Said, file: str, at: BandQuantile | None = None) -> Made:
    """The forecast of a history.

    Args:
        history: What was seen.
        said: What people want.
        file: Name of the CSV file beside the forecast.
        at: Plan for this quantile of the hours to come; None for the hours that were seen.

    Raises:
        InputError: Lengths or objectives of a class are missing, or there is no outlook.
    """
    _check(history, said, at)
    names = {seen.name: _column(seen.name, history) for seen in history.classes}
    if at is None:
        total, start = _whole(history.rate_per_s), history.start
        columns = {names[n]: _whole(history.class_rates_per_s[n]) for n in names}
    else:
        outlook = _there(history.outlook)
        total, start = np.array(outlook.quantiles_per_s[at]), outlook.start
        parts = _shares(history, len(total))
        columns = {column: total * parts[name] for name, column in names.items()}
        columns |= {f"{q}_per_s": np.array(line) for q, line in outlook.quantiles_per_s.items()}
    forecast = _forecast(
        version=1,
        name=said.name,
        model=said.model,
        time=TimeAxis(start=start, step_s=history.step_s),
        peak_minute_over_mean=history.peak_minute_over_mean,
        burstiness=history.burstiness,
        band=None if at is None else _band(_there(history.outlook), file),
        classes=tuple(_class(seen, said, file, names[seen.name]) for seen in history.classes),
        source=_source(history),
        caveats=tuple(MARK + line for line in (*history.caveats, *_more(history, at))),
    )
    return Made(forecast, {name: np.round(line, _DIGITS) for name, line in columns.items()})


def _forecast(**fields: Any) -> Forecast:
    """Sets only what is known, so that only that is written."""
    return Forecast(**{key: value for key, value in fields.items() if value is not None})


def _check(history: History, said: Said, at: BandQuantile | None) -> None:
    complaints = [
        Complaint(
            f"class {seen.name}",
            "input_tokens",
            "no source says how long its requests are",
            remedy="give a trace with lengths beside this source",
        )
        for seen in history.classes
        if seen.input_tokens is None
    ]
    complaints += [
        Complaint(
            f"class {seen.name}",
            "objectives",
            "needs a ttft and a tpot or chunk_gap",
            remedy=f"--objectives {seen.name}:ttft_p99=2s,tpot_p95=50ms, or without the class's "
            "name for all",
        )
        for seen in history.classes
        if seen.name not in said.objectives
    ]
    if at is not None and history.outlook is None:
        rule = "needs seven whole days of hourly history"
        remedy = "leave it out and plan on what was seen, or write `rate: daily` by hand"
        found = f"{len(history.rate_per_s) * history.step_s / 86_400:.3g} days"
        complaints.append(Complaint("--ahead", "", rule, found, remedy))
    if complaints:
        raise InputError(complaints)


def _there(outlook: Outlook | None) -> Outlook:
    assert outlook is not None  # _check asked for it
    return outlook


def _column(name: str, history: History) -> str:
    return "rate_per_s" if len(history.classes) == 1 else f"{name} per_s"


def _whole(line: Sequence[float | None]) -> Floats:
    """Unknown intervals straight between the known ones; a caveat names them."""
    values = np.array([np.nan if value is None else value for value in line])
    known = np.flatnonzero(~np.isnan(values))
    return np.asarray(np.interp(np.arange(len(values)), known, values[known]))


def _shares(history: History, hours: int) -> dict[str, Floats]:
    """Each class's part of the hours to come: its part of that hour on the last seven days."""
    rates = {s.name: _whole(history.class_rates_per_s[s.name])[-7 * DAY :] for s in history.classes}
    by_hour = {name: line.reshape(-1, DAY).mean(axis=0) for name, line in rates.items()}
    total = np.sum(list(by_hour.values()), axis=0)
    overall = {seen.name: seen.share for seen in history.classes}
    return {
        name: np.resize(
            np.divide(line, total, out=np.full(DAY, overall[name]), where=total > 0), hours
        )
        for name, line in by_hour.items()
    }


def _band(outlook: Outlook, file: str) -> Band:
    rates = {
        q: Rate(series=Series(file=file, column=f"{q}_per_s")) for q in outlook.quantiles_per_s
    }
    return Band(method=outlook.method, quantiles=rates, back_test=outlook.back_test)


def _class(seen: ClassSeen, said: Said, file: str, column: str) -> TrafficClass:
    fields: dict[str, Any] = {
        "name": seen.name,
        "rate": Rate(series=Series(file=file, column=column)),
        "input_tokens": seen.input_tokens,
        "output_tokens": seen.output_tokens,
        "length_correlation": seen.length_correlation,
        "prefix_reuse": seen.prefix_reuse,
        "acceptance_workload": said.workloads.get(seen.name),
        "objectives": said.objectives[seen.name],
    }
    return TrafficClass(**{key: value for key, value in fields.items() if value is not None})


def _source(history: History) -> Source:
    places = ", ".join(file.place.rstrip("/").rpartition("/")[2] for file in history.files)
    kinds = ", ".join(dict.fromkeys(file.format for file in history.files))
    return Source(what=f"rates and lengths of requests: {kinds}", where=places)


def _more(history: History, at: BandQuantile | None) -> list[str]:
    """What the making adds."""
    lines = ["max_tokens are the longest seen: a limit that was never met is not in the data"]
    if any(rate is None for rate in history.rate_per_s):
        lines.append("intervals that nobody counted were drawn straight between their neighbours")
    if history.peak_minute_over_mean is None:
        lines.append("no minutes in the data: peak_minute_over_mean is left to its default")
    if at is not None:
        outlook = _there(history.outlook)
        seen = max(rate for rate in history.rate_per_s if rate is not None)
        lines.append(
            f"rates are {at} of each hour to come; their highest is "
            f"{max(outlook.quantiles_per_s[at]):.4g}/s, the highest hour seen was {seen:.4g}/s"
        )
    return lines
