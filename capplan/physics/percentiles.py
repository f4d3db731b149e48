"""Percentiles of correlated series with intervals, and of histograms."""

from dataclasses import dataclass

import numpy as np

from capplan.physics.surface import Array

SECTIONS = 10
_T95 = 2.262
"""Two-sided 95 % of Student's t with nine degrees of freedom."""
_FEWEST = 30
"""Values in a section below which its own percentile means little."""


@dataclass(frozen=True)
class Percentile:
    """A value and its 95 % interval; None where the series is too short for one."""

    value: float
    low: float | None
    high: float | None


def percentile(series: Array, probability: float) -> Percentile:
    """A percentile of values in order of time.

    Neighbours in a queue wait together, so the interval comes from contiguous sections: the
    spread of their own percentiles, as if sections were independent (batch means).

    Args:
        series: The values, in order.
        probability: Such as 0.99.

    Source:
        Law, Simulation Modeling and Analysis, 5th ed., section 9.5.3.
    """
    if len(series) == 0:
        return Percentile(0.0, None, None)
    value = float(np.quantile(series, probability))
    if len(series) < SECTIONS * _FEWEST:
        return Percentile(value, None, None)
    each = [float(np.quantile(part, probability)) for part in np.array_split(series, SECTIONS)]
    return _around(value, each)


def mean(series: Array) -> Percentile:
    """The mean of values in order of time, with its interval."""
    if len(series) == 0:
        return Percentile(0.0, None, None)
    value = float(np.mean(series))
    if len(series) < SECTIONS * _FEWEST:
        return Percentile(value, None, None)
    return _around(value, [float(np.mean(part)) for part in np.array_split(series, SECTIONS)])


def histogram_percentile(edges: Array, counts: Array, probability: float) -> float:
    """Percentile of a histogram: the geometric middle of the bin it falls into.

    Args:
        edges: Rising and positive. [bins + 1]
        counts: [bins]
        probability: Such as 0.99.

    Returns:
        Nought where nothing was counted.
    """
    reached = np.cumsum(counts)
    if reached[-1] == 0:
        return 0.0
    place = min(int(np.searchsorted(reached, probability * reached[-1])), len(counts) - 1)
    return float(np.sqrt(edges[place] * edges[place + 1]))


def _around(value: float, sections: list[float]) -> Percentile:
    half = _T95 * float(np.std(sections, ddof=1)) / SECTIONS**0.5
    return Percentile(value, max(value - half, 0.0), value + half)
