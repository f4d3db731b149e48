"""What looks wrong in a history of requests: said, never mended."""

import datetime as dt

import numpy as np

from capplan.records.trace import Floats, Trace

_GAP_OVER_MEAN = 40.0
"""A wait this many times the mean around it is no chance: e^-40 if arrivals are random."""
_GAP_S = 60.0
_FEWEST = 20
"""Waits that a mean is taken from."""
_AROUND = 100
"""Waits before and after that make the mean around a gap."""
_CUT_SHARE = 0.01
_CUT_OVER_AROUND = 10.0
_ALL = 0.99
"""Lengths that are all alike were made so, not cut."""
_NEAR = 0.9
"""Only lengths close to the longest are looked at for a cut."""
_MOST_GAPS = 3


def of_file(trace: Trace) -> list[str]:
    """A clock that goes back, gaps and lengths that look cut, in the order of the file."""
    found = [*_back(trace.arrival_s), *_gaps(np.sort(trace.arrival_s), trace.dated)]
    for what, tokens in (("prompts", trace.prompt_tokens), ("answers", trace.output_tokens)):
        found += _cut(what, tokens)
    return found


def _back(arrival_s: Floats) -> list[str]:
    back = -np.diff(arrival_s)
    jumps = int((back > 0).sum())
    if not jumps:
        return []
    return [f"{jumps:,} rows are earlier than the row before, by up to {back.max():,.3g} s: sorted"]


def of_trace(trace: Trace) -> list[str]:
    """A coarse clock and requests that stand twice."""
    return [*_coarse(trace.arrival_s), *_duplicates(trace)]


def clock(second_s: float, dated: bool) -> str:
    """A moment for people: the date where there is one, else hours since the start."""
    if not dated:
        return f"hour {second_s / 3600:.2f}"
    return dt.datetime.fromtimestamp(second_s, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _coarse(arrival_s: Floats) -> list[str]:
    if len(arrival_s) < 2 or (arrival_s % 1).any():
        return []
    return ["the clock counts whole seconds: what happens within one is not in the data"]


def _duplicates(trace: Trace) -> list[str]:
    """Requests equal to the one before in everything; a coarse clock makes them by chance."""
    if not (trace.arrival_s % 1).any():
        return []
    order = np.lexsort((trace.output_tokens, trace.prompt_tokens, trace.kind, trace.arrival_s))
    columns = (trace.arrival_s, trace.prompt_tokens, trace.output_tokens, trace.kind)
    alike = np.ones(max(len(trace) - 1, 0), dtype=bool)
    for column in columns:
        alike &= np.diff(column[order]) == 0
    count = int(alike.sum())
    return [f"{count:,} requests repeat another in time and lengths: kept"] if count else []


def _gaps(arrival_s: Floats, dated: bool) -> list[str]:
    """Waits far longer than those around them."""
    waits = np.diff(arrival_s)
    if len(waits) < _FEWEST:
        return []
    total = np.concatenate([[0.0], np.cumsum(waits)])
    place = np.arange(len(waits))
    first = np.maximum(place - _AROUND, 0)
    last = np.minimum(place + _AROUND + 1, len(waits))
    around = (total[last] - total[first] - waits) / np.maximum(last - first - 1, 1)
    odd = np.flatnonzero((around > 0) & (waits > _GAP_S) & (waits > _GAP_OVER_MEAN * around))
    longest = odd[np.argsort(-waits[odd], kind="stable")][:_MOST_GAPS]
    lines = [
        f"nothing for {waits[at] / 60:,.1f} min from {clock(float(arrival_s[at]), dated)}, "
        f"{waits[at] / around[at]:,.0f} times the mean wait around it"
        for at in np.sort(longest)
    ]
    return lines + ([f"{len(odd) - _MOST_GAPS} more such gaps"] if len(odd) > _MOST_GAPS else [])


def _cut(what: str, tokens: Floats) -> list[str]:
    """A heap just below the longest: requests cut at a limit, whose own length nobody knows."""
    if len(tokens) < 1000:
        return []
    lengths, counts = np.unique(tokens, return_counts=True)
    top = int(counts[np.searchsorted(lengths, lengths[-1] * _NEAR) :].argmax())
    at = int(np.searchsorted(lengths, lengths[-1] * _NEAR)) + top
    limit = lengths[at]
    near = (tokens > 0.99 * limit) & (tokens <= 1.001 * limit)
    below = (tokens > 0.90 * limit) & (tokens <= 0.99 * limit)
    share, around = near.mean(), below.mean() / 9
    if not _CUT_SHARE <= share < _ALL or share < _CUT_OVER_AROUND * around:
        return []
    return [f"{share:.1%} of the {what} have about {limit:,.0f} tokens: cut at a limit, it seems"]
