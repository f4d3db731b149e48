"""A service's history as tables, with a picture of its week."""

import datetime as dt
import math

from capplan.records.forecast import Lengths
from capplan.records.history import ClassSeen, History, Outlook
from capplan.report import numbers
from capplan.report.layout import Note, Report, Table

_BARS = "▁▂▃▄▅▆▇█"
_EMPTY, _UNKNOWN = "·", "?"
_MOST_DAYS = 14
_WIDTH = 72
_SHOWN_FILES = 10
_SHOWN_NAME = 18


def report(history: History) -> Report:
    """Everything that `capplan forecast` tells."""
    mean, peak, place = _mean_and_peak(history)
    when = _moment(history, place)
    return Report(
        title=f"{numbers.rate(mean)} on average, {numbers.rate(peak)} in the busiest "
        f"{_span(history.step_s)}, {when}",
        subtitle=(_covers(history),),
        tables=(
            _files(history),
            _classes(history),
            *_dependence(history),
            *_bursts(history),
            *([] if history.outlook is None else [_outlook(history, history.outlook)]),
        ),
        notes=(
            Note(*_picture(history)),
            Note("Caveats", history.caveats),
        ),
    )


def _mean_and_peak(history: History) -> tuple[float, float, int]:
    known = [(rate, place) for place, rate in enumerate(history.rate_per_s) if rate is not None]
    peak, place = max(known, key=lambda pair: pair[0])
    return sum(rate for rate, _ in known) / len(known), peak, place


def _moment(history: History, place: int) -> str:
    moment = history.start + place * history.step
    if history.dated:
        return moment.strftime("%a %Y-%m-%d %H:%M")
    return f"{_span(place * history.step_s)} after the start"


def _span(seconds: float) -> str:
    """A length of time in its largest fitting unit.

    >>> _span(3600), _span(300), _span(336 * 3600), _span(0)
    ('1 h', '5 min', '14 d', '0 s')
    """
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size * (2 if unit == "d" else 1):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _covers(history: History) -> str:
    count = len(history.rate_per_s)
    total = _span(count * history.step_s)
    return f"{count} intervals of {_span(history.step_s)}, {total} in all"


def _files(history: History) -> Table:
    rows = [
        (
            _short(one.place),
            one.format,
            numbers.count(one.rows),
            numbers.count(one.kept),
            numbers.count(one.bad),
            numbers.count(one.unanswered),
        )
        for one in history.files[:_SHOWN_FILES]
    ]
    if len(history.files) > _SHOWN_FILES:
        rows.append((f"and {len(history.files) - _SHOWN_FILES} more", "", "", "", "", " "))
    return Table("Read", ("", "format", "rows", "kept", "bad", "no answer"), tuple(rows))


def _short(place: str) -> str:
    name = place.rstrip("/").rpartition("/")[2]
    return name if len(name) <= _SHOWN_NAME else "…" + name[-_SHOWN_NAME:]


def _classes(history: History) -> Table:
    rows = [row for seen in history.classes for row in _class(seen)]
    return Table(
        "Classes, in tokens",
        ("", "share", "mean", "p50", "p90", "p99", "longest"),
        tuple(rows),
    )


def _class(seen: ClassSeen) -> list[tuple[str, ...]]:
    rows = []
    for what, lengths in (("prompt", seen.input_tokens), ("answer", seen.output_tokens)):
        share = f"{seen.share:.1%}" if what == "prompt" else ""
        rows.append((f"{seen.name[:24]} {what}", share, *_lengths(lengths)))
    return rows


def _dependence(history: History) -> list[Table]:
    """Whether long prompts have long answers, and what of the prompts was cached."""
    rows = tuple(
        (
            seen.name[:24],
            numbers.ABSENT
            if seen.length_correlation is None
            else f"{seen.length_correlation:+.2f}",
            numbers.ABSENT if seen.prefix_reuse is None else f"{seen.prefix_reuse:.0%}",
        )
        for seen in history.classes
        if seen.length_correlation is not None or seen.prefix_reuse is not None
    )
    columns = ("", "rank correlation", "prompt tokens cached")
    return [Table("Prompt and answer together", columns, rows)] * bool(rows)


def _lengths(lengths: Lengths | None) -> tuple[str, ...]:
    if lengths is None:
        return (numbers.ABSENT,) * 5
    told = lengths.quantiles or {}
    middle = tuple(
        numbers.count(told[name]) if name in told else numbers.ABSENT
        for name in ("p50", "p90", "p99")
    )
    mean = numbers.ABSENT if lengths.mean_tokens is None else numbers.count(lengths.mean_tokens)
    return (mean, *middle, numbers.count(lengths.max_tokens))


def _bursts(history: History) -> list[Table]:
    rows: list[tuple[str, str]] = []
    if history.peak_minute_over_mean is not None and history.step_s > 60:
        minute = f"busiest minute over the busiest {_span(history.step_s)}"
        rows.append((minute, f"{history.peak_minute_over_mean:.2f}"))
    if history.burstiness is not None:
        found = history.burstiness
        rows += [
            *(
                (f"variance over mean of counts in {window}", f"{value:.2f}")
                for window, value in (
                    ("1 s", found.dispersion_1s),
                    ("10 s", found.dispersion_10s),
                    ("60 s", found.dispersion_60s),
                )
                if value is not None
            ),
            ("spread over mean of the time between requests", f"{found.gap_cv:.2f}"),
        ]
    if history.week_over_week is not None:
        rows.append(("last seven days over the seven before", f"{history.week_over_week:.2f}"))
    return [Table("Bursts and growth; random arrivals have 1", ("", ""), tuple(rows))] * bool(rows)


def _outlook(history: History, outlook: Outlook) -> Table:
    test = outlook.back_test
    days = len(next(iter(outlook.quantiles_per_s.values()))) / 24
    highest = {name: max(line) for name, line in outlook.quantiles_per_s.items()}
    since = f" {outlook.start:%a %Y-%m-%d %H:%M}" if history.dated else " the history"
    bar = " (it is the bar)" if outlook.method.startswith("seasonal-naive") else ""
    return Table(
        title=f"The {days:.3g} days after{since}",
        columns=("", ""),
        rows=(
            ("method", outlook.method),
            ("highest hour: p50", numbers.rate(highest["p50"])),
            ("  p90", numbers.rate(highest["p90"])),
            ("  p95", numbers.rate(highest["p95"])),
            (f"{test.held_back_days} days held back: inside p25-p75", f"{test.coverage_50:.0%}"),
            ("  inside p05-p95", f"{test.coverage_90:.0%}"),
            ("  loss over seasonal-naive's", f"{test.loss_over_naive:.2f}{bar}"),
        ),
    )


def _picture(history: History) -> tuple[str, tuple[str, ...]]:
    """A row a day, a mark an hour; of shorter histories a mark an interval."""
    peak = _mean_and_peak(history)[1]
    scale = f"{_BARS[-1]} is {numbers.rate(peak)}, {_EMPTY} none"
    if history.step_s != 3600 or len(history.rate_per_s) < 24:
        marks = [_mark(rate, peak) for rate in _squeezed(history.rate_per_s)]
        each = _span(history.step_s * math.ceil(len(history.rate_per_s) / _WIDTH))
        return f"Rate, a mark {each}; {scale}", ("".join(marks),)
    first = history.start.hour if history.dated else 0
    line = [None] * first + list(history.rate_per_s)
    rows = [line[at : at + 24] for at in range(0, len(line), 24)]
    left_out = max(0, len(rows) - _MOST_DAYS)
    days = [
        f"{_day(history, place):16}"
        + "".join(
            " " if not place and hour < first else _mark(rate, peak)
            for hour, rate in enumerate(row)
        )
        for place, row in enumerate(rows)
        if place >= left_out
    ]
    head = f"{'':16}0     6     12    18"
    title = "The days" if not left_out else f"The last {_MOST_DAYS} days"
    return f"{title}, a mark an hour; {scale}", (head, *days)


def _day(history: History, place: int) -> str:
    if not history.dated:
        return f"day {place + 1}"
    return (history.start + dt.timedelta(days=place)).strftime("%a %Y-%m-%d")


def _mark(rate: float | None, peak: float) -> str:
    if rate is None:
        return _UNKNOWN
    if rate <= 0:
        return _EMPTY
    return _BARS[min(int(rate / peak * len(_BARS)), len(_BARS) - 1)]


def _squeezed(line: tuple[float | None, ...]) -> list[float | None]:
    """The highest of so many intervals that the line fits."""
    each = math.ceil(len(line) / _WIDTH)
    blocks = [line[at : at + each] for at in range(0, len(line), each)]
    return [max((rate for rate in block if rate is not None), default=None) for block in blocks]
