"""Rates and lengths of requests from an engine's counters and histograms."""

import math
import time

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.importers.prometheus.client import Line, Prometheus
from capplan.importers.prometheus.engines import ENGINES, Engine
from capplan.records.history import FileRead
from capplan.records.trace import Counted, Floats, Reading, Sample, Seen

_MINUTE_S = 60.0
_SAMPLES = 4
"""Of a counter that a rate needs: two would do, were none ever late."""
_MINUTES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)
_POINTS = 16
"""That stand for a bucket of lengths, evenly in the logarithm."""
_MOST_INTERVALS = 200_000


def ask(url: str, window_s: float, selector: str = "", end_s: float | None = None) -> Reading:
    """What a Prometheus server has kept of the requests to an engine.

    Requests are counted when they are answered. A class is a `model_name`.

    Args:
        url: Where the server is.
        window_s: How far back. [s]
        selector: Labels, as `model_name="m",namespace="prod"`.
        end_s: Until when, since 1970; None for now. [s]

    Raises:
        InputError: The server cannot be asked, or knows of no engine.
    """
    server = Prometheus(url)
    end = math.floor((end_s or time.time()) / _MINUTE_S) * _MINUTE_S
    engine, spacing = _found(server, selector, window_s, end)
    step = _step(spacing)
    end = math.floor(end / step) * step
    count = int(window_s // step)
    if not 1 <= count <= _MOST_INTERVALS:
        rule = f"must hold 1 to {_MOST_INTERVALS:,} intervals of {step:g} s"
        raise InputError([Complaint("--window", "", rule, f"{window_s:g} s")])
    begin = end - count * step
    query = f"sum by (model_name) (rate({_series(engine.requests, selector)}[{step:g}s]))"
    # A rate at a moment tells of the step before it.
    lines = server.over(query, begin + step, end, step)
    if not lines:
        rule = "has too few samples in the window"
        raise InputError([Complaint(url, engine.requests, rule)])
    kinds, rates = _grid(lines, begin + step, step, count)
    whole = _without_ends(rates)
    start = begin + step * whole.start
    seen = tuple(_seen(server, engine, _one(selector, name), window_s, end) for name in kinds)
    history = Counted(start, step, rates[:, whole], kinds, dated=True, seen=seen)
    known = int((~np.isnan(rates[:, whole]).any(axis=0)).sum())
    read = FileRead(
        place=url, format=f"Prometheus, {engine.name}", rows=whole.stop - whole.start, kept=known
    )
    return Reading(None, history, (read,), _said(spacing, seen))


def _step(spacing_s: float) -> float:
    """The shortest part of an hour that holds enough samples, an hour at most [s]."""
    enough = _SAMPLES * spacing_s / _MINUTE_S
    return next((m for m in _MINUTES if m >= enough), _MINUTES[-1]) * _MINUTE_S


def _series(name: str, selector: str, extra: str = "") -> str:
    labels = ",".join(part for part in (selector, extra) if part)
    return f"{name}{{{labels}}}" if labels else name


def _one(selector: str, model: str) -> str:
    quoted = model.replace("\\", "\\\\").replace('"', '\\"')
    return ",".join(part for part in (selector, f'model_name="{quoted}"') if part)


def _found(
    server: Prometheus, selector: str, window_s: float, end_s: float
) -> tuple[Engine, float]:
    """The engine whose requests were counted, and the time between samples [s]."""
    for engine in ENGINES:
        count = f"max(count_over_time({_series(engine.requests, selector)}[10m]))"
        lines = server.now(f"max_over_time({count}[{window_s:.0f}s:5m])", end_s)
        if lines:
            # Both ends of the ten minutes may hold a sample.
            return engine, 600.0 / max(next(iter(lines[0].values.values())) - 1, 1.0)
    names = ", ".join(engine.requests for engine in ENGINES)
    rule = "has none of these counters in the window"
    raise InputError([Complaint(server.url, "", rule, names, "see --window and --selector")])


def _grid(
    lines: list[Line], first_s: float, step_s: float, count: int
) -> tuple[tuple[str, ...], Floats]:
    """Rates by model and interval, nan where the server has nothing."""
    kinds = tuple(line.labels.get("model_name", "all") for line in lines)
    rates = np.full((len(lines), count), np.nan)
    for row, line in enumerate(lines):
        for at, value in line.values.items():
            rates[row, round((at - first_s) / step_s)] = value
    # A model that is not served while others are has no requests, which is no gap.
    watched = ~np.isnan(rates).all(axis=0)
    return kinds, np.where(np.isnan(rates) & watched, 0.0, rates)


def _without_ends(rates: Floats) -> slice:
    """The intervals from the first that was watched to the last."""
    watched = np.flatnonzero(~np.isnan(rates).all(axis=0))
    return slice(int(watched[0]), int(watched[-1]) + 1)


def _seen(
    server: Prometheus, engine: Engine, selector: str, window_s: float, end_s: float
) -> Seen | None:
    """Lengths over the whole window; None where the engine keeps no histograms of them."""
    found = [
        None if name is None else _sample(server, name, selector, window_s, end_s)
        for name in (engine.prompt, engine.output)
    ]
    prompt, output = found
    if prompt is None or output is None:
        return None
    sums = [
        None if name is None else _increase(server, _series(name, selector), window_s, end_s)
        for name in (engine.cached, engine.asked)
    ]
    reuse = None
    if sums[0] is not None and sums[1]:
        reuse = min(sums[0] / sums[1], 1.0)
    return Seen(prompt, output, prefix_reuse=reuse, count=float(prompt.weight.sum()))


def _increase(server: Prometheus, series: str, window_s: float, end_s: float) -> float | None:
    lines = server.now(f"sum(increase({series}[{window_s:.0f}s]))", end_s)
    return next(iter(lines[0].values.values())) if lines else None


def _sample(
    server: Prometheus, name: str, selector: str, window_s: float, end_s: float
) -> Sample | None:
    """A histogram's buckets as points inside them."""
    series = _series(f"{name}_bucket", selector)
    query = f"sum by (le) (increase({series}[{window_s:.0f}s]))"
    below = {
        float(line.labels["le"]): next(iter(line.values.values()))
        for line in server.now(query, end_s)
        if "le" in line.labels
    }
    counts = np.diff([0.0, *(below[bound] for bound in sorted(below))])
    if not (counts > 0).any():
        return None
    tokens, weight = spread(sorted(below), np.maximum(counts, 0.0))
    total = _increase(server, _series(f"{name}_sum", selector), window_s, end_s)
    number = _increase(server, _series(f"{name}_count", selector), window_s, end_s)
    return Sample(tokens, weight, total / number if total and number else None)


def spread(bounds: list[float], counts: Floats) -> tuple[Floats, Floats]:
    """Points for the requests of each bucket, evenly in the logarithm of the length.

    What lies beyond the last finite bound stands at it.

    Args:
        bounds: Upper bounds of the buckets, rising; the last may be infinite. [tokens]
        counts: Requests in each, shape (buckets,).

    Returns:
        Tokens and weights.
    """
    tokens: list[float] = []
    weight: list[float] = []
    low = 1.0
    for bound, count in zip(bounds, counts.tolist(), strict=True):
        high = low if math.isinf(bound) else max(bound, 1.0)
        if count > 0:
            steps = (np.arange(_POINTS) + 0.5) / _POINTS
            tokens += np.exp(np.log(low) + steps * np.log(high / low)).tolist()
            weight += [count / _POINTS] * _POINTS
        low = high
    return np.array(tokens), np.array(weight)


def _said(spacing_s: float, seen: tuple[Seen | None, ...]) -> tuple[str, ...]:
    lines = [
        "requests are counted when they are answered, not when they come",
        f"sampled every {spacing_s:.3g} s: bursts shorter than that are not in the data",
    ]
    if any(one is not None for one in seen):
        lines.append(
            "lengths come from histograms: quantiles are exact at the buckets' bounds only, and "
            "whether long prompts have long answers is not known"
        )
    return tuple(lines)
