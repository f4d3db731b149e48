"""Point forecasts of a rate in hours: a seasonal-naive one, and a smooth day and week.

Rates are taken as logarithms, with a hundredth of their mean added so that an empty hour is one.
Empty or unknown hours do not enter the fit.
"""

from collections.abc import Callable

import numpy as np

from capplan.records.trace import Floats, Ints

DAY, WEEK = 24, 168
"""Hours."""
_DAILY, _WEEKLY = 4, 1
"""Harmonics; a week's only with a week's history."""
_RIDGE = 1e-3

Point = Callable[[Floats, int], Floats]
"""Logarithms so far, nan where unknown, and hours ahead, to the logarithms then."""


def naive(season: int) -> Point:
    """As it was one season before (Hyndman and Athanasopoulos, Forecasting, 5.2)."""

    def point(logs: Floats, ahead: int) -> Floats:
        last = logs[-season:]
        known = np.nanmedian(logs)
        return np.resize(np.where(np.isnan(last), known, last), ahead)

    return point


def harmonics(logs: Floats, ahead: int) -> Floats:
    """Least squares on waves of a day and a week, drawn a little to the mean (ridge).

    Harmonic regression: Hyndman and Athanasopoulos, Forecasting, 7.4.
    """
    count = len(logs)
    weekly = _WEEKLY if count >= WEEK else 0
    known = ~np.isnan(logs)
    waves = _waves(np.arange(count), weekly)[known]
    draw = _RIDGE * len(waves) * np.eye(waves.shape[1])
    draw[0, 0] = 0.0
    weights = np.linalg.solve(waves.T @ waves + draw, waves.T @ logs[known])
    return np.asarray(_waves(np.arange(count, count + ahead), weekly) @ weights)


def _waves(hours: Ints, weekly: int) -> Floats:
    turns = [(DAY, times) for times in range(1, _DAILY + 1)]
    turns += [(WEEK, times) for times in range(1, weekly + 1)]
    columns = [np.ones(len(hours))]
    for season, times in turns:
        angle = 2 * np.pi * times * hours / season
        columns += [np.sin(angle), np.cos(angle)]
    return np.stack(columns, axis=1)
