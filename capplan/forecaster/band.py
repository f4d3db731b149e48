"""A band for the hours to come, from errors on days that a forecast had not seen."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.forecaster.seasons import DAY, WEEK, Point, harmonics, naive
from capplan.records.forecast import BackTest, BandQuantile
from capplan.records.trace import Floats

NAMES: tuple[BandQuantile, ...] = get_args(BandQuantile)
PROBABILITIES = np.array([int(name[1:]) / 100 for name in NAMES])
FEWEST_DAYS = 7
_FIRST_FIT = 2
"""Days behind the first forecast that an error is taken from."""
_LEAST_PART = 4
"""Nor from less than a quarter of the history: such early fits err more than the last one."""
_MOST_ORIGINS = 28
_HELD_BACK = (3, 7)
"""Days: at least, at most; a third of the history between."""
_EMPTY = 0.01
"""Of the mean rate, added before logarithms."""


@dataclass(frozen=True)
class Method:
    """A way to forecast: rates so far and hours ahead to quantiles, shape (NAMES, hours)."""

    name: str
    band: Callable[[Floats, int], Floats]
    is_naive: bool = False
    """The bar that others must clear."""
    fewest_days: int = 1


@dataclass(frozen=True, eq=False)
class Ahead:
    """The band and how its method came to be chosen."""

    method: str
    quantiles: Floats
    """Shape (NAMES, hours) [1/s]."""
    back_test: BackTest


def ahead(rate_per_s: Floats, hours: int) -> Ahead:
    """Quantiles of the hours that follow a history.

    The last days are held back and forecast from each midnight before. The method with the least
    quantile loss there is taken: a seasonal-naive one unless it is beaten.

    Args:
        rate_per_s: Rate of all classes by the hour, shape (hours,); nan where unknown. [1/s]
        hours: How far. [h]

    Raises:
        InputError: There is less than a week of steady history.
    """
    days = steady_days(rate_per_s)
    if days < FEWEST_DAYS:
        rule = f"a band for the future needs {FEWEST_DAYS} whole days of history in a row"
        remedy = "leave --ahead out and plan on what was seen, or write `rate: daily` by hand"
        raise InputError([Complaint("--ahead", "", rule, f"{days}", remedy)])
    rate = rate_per_s[len(rate_per_s) - days * DAY :]
    held = max(_HELD_BACK[0], min(_HELD_BACK[1], days // 3))
    scores = {m: _score(m, rate, held, hours) for m in METHODS if m.fewest_days <= days - held}
    bar = min(scores[m][0] for m in scores if m.is_naive)
    best = min(scores, key=lambda m: (scores[m][0], not m.is_naive))
    lost, coverage_50, coverage_90 = scores[best]
    test = BackTest(
        held_back_days=held,
        coverage_50=coverage_50,
        coverage_90=coverage_90,
        loss_over_naive=lost / bar if bar > 0 else 1.0,
    )
    return Ahead(best.name, best.band(rate, hours), test)


def steady_days(rate_per_s: Floats) -> int:
    """Days up to the last hour, back to one that has no requests in half of its hours or more."""
    days = len(rate_per_s) // DAY
    by_day = rate_per_s[len(rate_per_s) - days * DAY :].reshape(days, DAY)
    idle = np.flatnonzero((by_day > 0).sum(axis=1) <= DAY // 2)
    return days - 1 - int(idle[-1]) if len(idle) else days


def loss(rate_per_s: Floats, found: Floats) -> float:
    """Mean quantile (pinball) loss over the probabilities and the known hours [1/s].

    Source: Koenker and Bassett, Econometrica 46 (1978), 33-50.
    """
    over = rate_per_s - found
    each = np.maximum(PROBABILITIES[:, None] * over, (PROBABILITIES[:, None] - 1) * over)
    return float(np.nanmean(each))


def _score(method: Method, rate: Floats, held: int, hours: int) -> tuple[float, float, float]:
    """Loss, and coverage of 50 % and 90 %, over the days held back, from each midnight.

    Midnights after which nothing is known for so long test nothing.

    Raises:
        InputError: All are of that kind.
    """
    low = [NAMES.index("p25"), NAMES.index("p05")]
    high = [NAMES.index("p75"), NAMES.index("p95")]
    losses, inside = [], []
    for origin in range(len(rate) - held * DAY, len(rate), DAY):
        truth = rate[origin : origin + hours]
        if np.isnan(truth).all():
            continue
        found = method.band(rate[:origin], len(truth))
        losses.append(loss(truth, found))
        within = (truth >= found[low]) & (truth <= found[high])
        inside.append(within[:, ~np.isnan(truth)])
    if not losses:
        rule = f"nothing is known of the {hours} hours after any of the last {held} midnights"
        remedy = "look further ahead, or fill the holes in the history"
        raise InputError([Complaint("--ahead", "", rule, remedy=remedy)])
    coverage = np.concatenate(inside, axis=1).mean(axis=1)
    return float(np.mean(losses)), float(coverage[0]), float(coverage[1])


def _logs(rate_per_s: Floats) -> tuple[Floats, float]:
    """Logarithms with a little added, nan for hours without a request; and what was added.

    Such hours are outages or holes in the data, or so low that they decide nothing.
    """
    empty = _EMPTY * float(np.nanmean(rate_per_s))
    return np.log(np.where(rate_per_s > 0, rate_per_s, np.nan) + empty), empty


def _rates(logs: Floats, empty: float) -> Floats:
    return np.asarray(np.maximum(np.exp(logs) - empty, 0.0))


def _seasonal(season: int) -> Callable[[Floats, int], Floats]:
    """As one season before; spread by changes between seasons, growing with the root of them."""

    def found(rate_per_s: Floats, hours: int) -> Floats:
        logs, empty = _logs(rate_per_s)
        lag = season if len(logs) >= 2 * season else DAY
        spread = np.nanquantile(logs[lag:] - logs[:-lag], PROBABILITIES)
        seasons = 1 + np.arange(hours) // season
        return _rates(naive(season)(logs, hours) + spread[:, None] * np.sqrt(seasons), empty)

    return found


def _by_errors(point: Point) -> Callable[[Floats, int], Floats]:
    """A point forecast, spread by its own errors on the days after each midnight before."""

    def found(rate_per_s: Floats, hours: int) -> Floats:
        logs, empty = _logs(rate_per_s)
        return _rates(point(logs, hours) + _errors(point, logs)[:, None], empty)

    return found


def _errors(point: Point, logs: Floats) -> Floats:
    """Quantiles of a method's errors in logarithms, shape (NAMES,).

    Days are what is independent: Student's t with one degree less than there are midnights widens
    what so few of them show.
    """
    from scipy.stats import norm, t

    days = len(logs) // DAY
    origins = range(max(_FIRST_FIT, days // _LEAST_PART, days - _MOST_ORIGINS), days)
    errors = [logs[d * DAY :] - point(logs[: d * DAY], len(logs) - d * DAY) for d in origins]
    found = np.nanquantile(np.concatenate(errors), PROBABILITIES)
    middle = PROBABILITIES == 0.5
    off_centre = np.where(middle, 0.75, PROBABILITIES)
    wider = t.ppf(off_centre, len(errors) - 1) / norm.ppf(off_centre)
    return np.asarray(found * np.where(middle, 1.0, wider))


def _mean_of_all(rate_per_s: Floats, hours: int) -> Floats:
    """The other methods' quantiles, averaged: Lichtendahl et al., Management Science 59 (2013)."""
    usable = [m for m in _SINGLE if m.fewest_days * DAY <= len(rate_per_s)]
    return np.asarray(np.mean([m.band(rate_per_s, hours) for m in usable], axis=0))


_SINGLE = (
    Method("seasonal-naive, a day before", _seasonal(DAY), is_naive=True, fewest_days=2),
    Method("seasonal-naive, a week before", _seasonal(WEEK), is_naive=True, fewest_days=7),
    Method("harmonic regression on day and week", _by_errors(harmonics), fewest_days=4),
)
METHODS = (*_SINGLE, Method("mean of seasonal-naive and harmonic", _mean_of_all, fewest_days=4))
