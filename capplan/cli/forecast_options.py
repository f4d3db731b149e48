"""Options of `capplan forecast`, read into what the reading and the making take."""

import datetime as dt
import re
from typing import TYPE_CHECKING, get_args

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from capplan.errors import InputError
    from capplan.forecaster.kinds import Rule
    from capplan.records.forecast import BandQuantile, Objective

_MOST_CLASSES = 50
_RULE = re.compile(r"(prefix|lengths):([1-9][0-9]?)")


def _refused(option: str, rule: str, found: str) -> "InputError":
    from capplan.errors import Complaint, InputError

    return InputError([Complaint(option, "", rule, repr(found))])


def zone(text: str | None) -> "ZoneInfo | None":
    """A time zone by its name.

    Raises:
        InputError: There is none.
    """
    from zoneinfo import ZoneInfo

    if text is None:
        return None
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise _refused("--zone", "must be a name like Europe/Berlin or UTC", text) from error


def start(text: str | None) -> dt.datetime | None:
    """A moment with its zone.

    Raises:
        InputError: It is none.
    """
    if text is None:
        return None
    try:
        moment: dt.datetime | None = dt.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _refused("--start", "must be a moment with its zone, as 2026-12-07T00:00:00Z", text)
    return moment


def duration_s(option: str, text: str | None) -> float | None:
    """Whole seconds of a duration with a unit [s].

    Raises:
        InputError: It is none, or shorter than a second.
    """
    from capplan.files.durations import seconds

    if text is None:
        return None
    found = seconds(text)
    if found is None or found < 1 or not found.is_integer():
        raise _refused(option, "must be a duration of whole seconds, as 5min, 1h or 7d", text)
    return found


def hours_ahead(text: str | None) -> int | None:
    """Whole hours of a duration [h].

    Raises:
        InputError: It is no whole number of hours, or longer than 13 weeks.
    """
    found = duration_s("--ahead", text)
    if found is None:
        return None
    if found % 3600 or found > 91 * 86_400:
        raise _refused("--ahead", "must be whole hours, at most 91d", text or "")
    return int(found / 3600)


def classes(text: str) -> "tuple[Rule, bool]":
    """How to tell classes apart, and whether by the file.

    Raises:
        InputError: There is no such way.
    """
    from capplan.forecaster.kinds import Rule

    if text in {"column", "file"}:
        return Rule("column"), text == "file"
    if text == "one":
        return Rule("one"), False
    match = _RULE.fullmatch(text)
    if match is None or int(match.group(2)) > _MOST_CLASSES:
        rule = f"must be column, one, file, prefix:N or lengths:N, N at most {_MOST_CLASSES}"
        raise _refused("--classes", rule, text)
    by, count = match.groups()
    return Rule("prefix" if by == "prefix" else "lengths", int(count)), False


def quantile(text: str) -> "BandQuantile":
    """A quantile of the band.

    Raises:
        InputError: The band has none such.
    """
    from capplan.records.forecast import BandQuantile

    names: tuple[BandQuantile, ...] = get_args(BandQuantile)
    for name in names:
        if name == text:
            return name
    raise _refused("--at", f"must be one of {', '.join(names)}", text)


def objectives(texts: list[str], names: list[str]) -> "dict[str, dict[Objective, float]]":
    """Objectives of each class [s]: `ttft_p99=2s,tpot_p95=50ms` for all, `chat:…` for one.

    Raises:
        InputError: An objective or class does not exist, or a value is no duration.
    """
    found: dict[str, dict[Objective, float]] = {}
    for text in sorted(texts, key=_class_of):
        own, given = _class_of(text), _pairs(text)
        if own and own not in names:
            raise _refused("--objectives", f"no such class; there are {', '.join(names)}", own)
        for name in [own] if own else names:
            found[name] = given
    return found


def workloads(texts: list[str], names: list[str]) -> dict[str, str]:
    """Acceptance workload of each class: `chat` for all, `agents:agent` for one.

    Raises:
        InputError: There is no such class.
    """
    found: dict[str, str] = {}
    for text in sorted(texts, key=lambda text: ":" in text):
        own, _, workload = text.rpartition(":")
        if own and own not in names:
            raise _refused("--workload", f"no such class; there are {', '.join(names)}", own)
        found |= dict.fromkeys([own] if own else names, workload)
    return found


def _class_of(text: str) -> str:
    """The class before the last colon that stands before the first equals sign."""
    return text.partition("=")[0].rpartition(":")[0]


def _pairs(text: str) -> "dict[Objective, float]":
    from capplan.files.durations import seconds
    from capplan.records.forecast import Objective

    known: dict[str, Objective] = {name: name for name in get_args(Objective)}
    found: dict[Objective, float] = {}
    own = _class_of(text)
    for part in text[len(own) + bool(own) :].split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        name, length = known.get(key.removesuffix("_s") + "_s"), seconds(value)
        if name is None or length is None:
            rule = "must be like ttft_p99=2s,tpot_p95=50ms, after CLASS: for one class"
            raise _refused("--objectives", rule, part)
        found[name] = length
    return found
