"""How unevenly requests come within an interval."""

import numpy as np

from capplan.forecaster.counting import MINUTE_S
from capplan.records.forecast import Burstiness
from capplan.records.trace import Counted, Floats

_AROUND_S = 600.0
"""Shorter intervals are put together: what lasts minutes is a burst too."""
_MOST_S = 28 * 86_400.0
"""Of a longer history the last four weeks are looked at."""
_FEWEST = 1000
"""Requests below which a variance says little."""


def burstiness(
    arrival_s: Floats, begin_s: float, step_s: float, intervals: int
) -> Burstiness | None:
    """Dispersion of counts and of gaps around each interval's own mean; None for few requests.

    The day's shape so does not count as bursts. Index of dispersion for counts: Cox and Lewis,
    The Statistical Analysis of Series of Events (1966), ch. 4; 1 for random arrivals, k where they
    come in batches of k.
    """
    if intervals * step_s > _MOST_S:
        begin_s += (intervals - int(_MOST_S / step_s)) * step_s
        intervals = int(_MOST_S / step_s)
    if step_s < _AROUND_S:
        intervals = int(intervals * step_s // _AROUND_S)
        step_s = _AROUND_S
    inside = arrival_s[(arrival_s >= begin_s) & (arrival_s < begin_s + intervals * step_s)]
    if len(inside) < _FEWEST:
        return None
    since = inside - begin_s
    seconds = (dispersion(since, window_s, step_s, intervals) for window_s in (1.0, 10.0, 60.0))
    one, ten, sixty = seconds
    return Burstiness(
        gap_cv=_gap_cv(since, step_s),
        dispersion_1s=one,
        dispersion_10s=ten,
        dispersion_60s=sixty,
    )


def dispersion(since_s: Floats, window_s: float, step_s: float, intervals: int) -> float | None:
    """Variance over mean of the counts in windows, around each interval's mean.

    Args:
        since_s: Arrivals since the first interval's begin, shape (requests,). [s]
        window_s: Length of a window, at most half of an interval. [s]
        step_s: Length of an interval. [s]
        intervals: How many there are.

    Returns:
        None where an interval holds a single window: nothing is known then.
    """
    windows = int(step_s // window_s)
    if windows < 2:
        return None
    place = np.floor(since_s / step_s).astype(np.int64)
    slot = np.floor((since_s - place * step_s) / window_s).astype(np.int64)
    whole = (slot < windows) & (place < intervals)
    flat = place[whole] * windows + slot[whole]
    counts = np.bincount(flat, minlength=intervals * windows).reshape(intervals, windows)
    variance = counts.var(axis=1, ddof=1).sum()
    return float(variance / counts.mean(axis=1).sum())


def _gap_cv(since_s: Floats, step_s: float) -> float:
    """Spread over mean of the waits, both around each interval's own mean wait."""
    gaps = np.diff(since_s)
    place = np.floor(since_s[1:] / step_s).astype(np.int64)
    count = np.bincount(place)
    mean = np.bincount(place, gaps)[place] / count[place]
    relative = gaps[mean > 0] / mean[mean > 0]
    return float(relative.std()) if len(relative) else 0.0


def peak_minute_over_mean(minutes: Counted, highest_per_s: float) -> float | None:
    """The busiest minute's rate over the busiest interval's; None without minutes.

    That interval's plan then serves the busiest minute that was seen. [-]

    Args:
        minutes: Rates in steps that divide a minute.
        highest_per_s: Rate of the busiest interval. [1/s]
    """
    if minutes.step_s > MINUTE_S or highest_per_s <= 0:
        return None
    rates = np.nansum(minutes.rate_per_s, axis=0)
    return max(1.0, float(rates.max()) / highest_per_s)
