"""Sources to one history."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.importers.traces import suspicions
from capplan.importers.traces.detect import read_file
from capplan.importers.traces.how import How
from capplan.importers.traces.part import Part
from capplan.records.trace import Reading, Trace


def read(
    paths: Sequence[Path],
    how: How,
    *,
    kinds_by_file: bool = False,
    monitored: Reading | None = None,
) -> Reading:
    """The history that files hold together.

    Files of requests are one trace. One source of rates may stand beside them: then the rates are
    its own, and the lengths theirs.

    Args:
        paths: Files or folders.
        how: What the user says.
        kinds_by_file: Whether each file's requests are a class of their own.
        monitored: Rates from elsewhere.

    Raises:
        InputError: Of every file that cannot be read, or files that do not go together.
    """
    parts: list[Part] = []
    rates: list[Reading] = [] if monitored is None else [monitored]
    complaints: list[Complaint] = []
    for path in paths:
        try:
            found = read_file(path, how)
        except InputError as error:
            complaints += error.complaints
            continue
        if isinstance(found, Part):
            parts.append(found)
        else:
            rates.append(found)
    if complaints:
        raise InputError(complaints)
    how.ledger.check()
    return _together(parts, rates, how, kinds_by_file=kinds_by_file)


def _together(parts: list[Part], rates: list[Reading], how: How, *, kinds_by_file: bool) -> Reading:
    if len(rates) > 1:
        places = ", ".join(one.files[0].place for one in rates)
        raise InputError([Complaint("", "", "give one source of rates at a time", places)])
    if not parts:
        return rates[0]
    requests = _requests(parts, how, kinds_by_file=kinds_by_file)
    if not rates:
        return requests
    files = (*rates[0].files, *requests.files)
    caveats = (*rates[0].caveats, *requests.caveats, _TWO)
    return Reading(requests.requests, rates[0].rates, files, caveats)


_TWO = "lengths of requests come from another source than their rates"


def _requests(parts: list[Part], how: How, *, kinds_by_file: bool) -> Reading:
    """All requests in order of arrival."""
    dated = {part.dated for part in parts}
    zoned = {part.zoned for part in parts if part.zoned is not None}
    if len(dated) > 1 or len(zoned) > 1:
        rule = "sources must all tell the date or none" if len(dated) > 1 else _ZONES
        raise InputError([Complaint(part.place, "", rule) for part in parts])
    caveats = [line for part in parts for line in _said(part, how)]
    for part in parts:
        where = f"{Path(part.place).name}: " if len(parts) > 1 else ""
        caveats += [where + one for one in suspicions.of_file(part.trace())]
    traces = [part.trace() for part in parts]
    if kinds_by_file:
        names = _names([part.place for part in parts])
        traces = [_of_one_kind(*pair) for pair in zip(traces, names, strict=True)]
    trace = _joined(traces)
    caveats += suspicions.of_trace(trace)
    files = tuple(part.read() for part in parts)
    return Reading(trace, None, files, tuple(dict.fromkeys(caveats)))


_ZONES = "times must all have a zone or none: --zone NAME gives one to those without"


def _said(part: Part, how: How) -> list[str]:
    """What the reading itself makes worth saying."""
    lines = list(part.caveats)
    if part.zoned is False:
        lines.append(f"times without a zone were taken as {how.zone or 'UTC'}")
    if part.unanswered:
        lines.append(f"{part.place}: {part.unanswered:,} requests without an answer left out")
    if part.bad:
        lines.append(f"{part.place}: {part.bad:,} bad rows left out")
    if part.hit_share is not None and part.bound_share is not None:
        lines.append(
            f"replayed through a prefix cache {part.hit_share:.1%} of the prompts' blocks were "
            f"there; in one that never forgets {part.bound_share:.1%}"
        )
    return lines


def _names(places: list[str]) -> list[str]:
    """Names of files without their ends and what all begin with, up to a mark between words."""
    names = [Path(place).name.partition(".")[0] or place for place in places]
    common = _common(names) if len(names) > 1 else ""
    cut = max((at + 1 for at, letter in enumerate(common) if not letter.isalnum()), default=0)
    short = [name[cut:] for name in names]
    return short if all(short) else names


def _common(names: list[str]) -> str:
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in alike)


def _of_one_kind(trace: Trace, name: str) -> Trace:
    return replace(trace, kind=np.zeros(len(trace), dtype=np.int64), kinds=(name,))


def _joined(traces: list[Trace]) -> Trace:
    """One trace in order of arrival; columns that not all have are left out."""
    kinds: dict[str, int] = {}
    kind = [
        np.array([kinds.setdefault(name, len(kinds)) for name in one.kinds])[one.kind]
        for one in traces
    ]
    arrival = np.concatenate([one.arrival_s for one in traces])
    if not traces[0].dated:
        arrival = arrival - min(float(one.arrival_s.min()) for one in traces)
    order = np.argsort(arrival, kind="stable")
    cached = [one.cached_tokens for one in traces if one.cached_tokens is not None]
    prefix = [one.prefix for one in traces if one.prefix is not None]
    return Trace(
        arrival_s=arrival[order],
        prompt_tokens=np.concatenate([one.prompt_tokens for one in traces])[order],
        output_tokens=np.concatenate([one.output_tokens for one in traces])[order],
        kind=np.concatenate(kind)[order],
        kinds=tuple(kinds),
        dated=traces[0].dated,
        cached_tokens=np.concatenate(cached)[order] if len(cached) == len(traces) else None,
        prefix=prefix[0][order] if len(prefix) == len(traces) == 1 else None,
    )
