"""The balance held to simulations: what they say where they ran, and a corrected curve elsewhere.

At the last rate of the mix that decides, each modelled percentile is brought to the simulated one
by a factor on what load adds to it: a request served alone is modelled well, a factor on the whole
would move that too. The factors then go with the curve to other mixes, other hours and the ends of
bands. What they do not explain stays as a ratio of capacities, taken from the nearest mix that was
simulated.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from capplan.physics.latency import amplified
from capplan.physics.surface import Array
from capplan.planner import capacity as capacities
from capplan.planner.capacity import Curve
from capplan.planner.last_rate import Found
from capplan.planner.latencies import Estimates
from capplan.planner.operating_point import batch_at, between
from capplan.planner.trial import Trial
from capplan.records.forecast import Objective

_SEEN = 0.01
"""What load adds to a percentile, over the percentile alone, from which on a factor is taken."""
_LEAST = 0.1
"""Smallest factor: with nought for one, no load would ever be too much."""
_UNKNOWN = 0.05
"""Part of what the balance can serve that stands for a capacity it holds to be nought."""

Factors = dict[tuple[int, Objective], float]
"""What load adds to a percentile, simulated over modelled, by class and objective."""


@dataclass(frozen=True)
class Calibration:
    """What simulations of a pool say of its curve.

    Attributes:
        factors: Of the mix that was simulated first.
        shares: Of the simulated mixes. [simulated, classes]
        ratio: Simulated capacity of each over that of the corrected curve. [simulated]
    """

    factors: Factors
    shares: Array
    ratio: Array

    @classmethod
    def of(cls, trial: Trial, found: Found, estimates: Estimates) -> Self:
        """From the first mix that was simulated, at the last rate that keeps the objectives."""
        factors = _factors(trial, found, estimates)
        here = trial.curve.replica.load.shares[[trial.mix]]
        alone = cls(factors, here, np.ones(1))
        return alone.and_also(trial, found)

    def and_also(self, trial: Trial, found: Found) -> Self:
        """With one more mix simulated."""
        modelled = corrected(self.curve(trial.curve))[trial.mix]
        here = trial.curve.replica.load.shares[trial.mix]
        others = np.any(self.shares != here, axis=1)
        return replace(
            self,
            shares=np.vstack([self.shares[others], here]),
            ratio=np.append(self.ratio[others], found.rate_per_s / modelled),
        )

    def curve(self, curve: Curve) -> Curve:
        """The curve with each objective's use corrected."""
        return curve.calibrated(self.by_constraint(curve))

    def by_constraint(self, curve: Curve) -> Array:
        """The factor of each constraint; 1 of those that are no objectives. [constraints]."""
        names = curve.replica.load.names
        return np.array(
            [
                1.0
                if one.binding.quantity is None or one.binding.traffic_class is None
                else self.factors.get(
                    (names.index(one.binding.traffic_class), one.binding.quantity), 1.0
                )
                for one in curve.constraints
            ]
        )

    def estimates(self, estimates: Estimates) -> Estimates:
        """Percentiles corrected likewise."""
        return {
            key: amplified(values, self.factors.get(key, 1.0)) for key, values in estimates.items()
        }

    def capacity_per_s(self, curve: Curve) -> Array:
        """Highest rate of each mix. [mixes].

        Args:
            curve: As it was before its correction.
        """
        shares = curve.replica.load.shares
        nearest = np.abs(shares[:, None] - self.shares).sum(axis=-1).argmin(axis=1)
        return np.asarray(corrected(self.curve(curve)) * self.ratio[nearest])

    def distance(self, shares: Array) -> Array:
        """Part of requests by which mixes differ from the nearest one simulated. [mixes]."""
        return np.asarray(np.abs(shares[:, None] - self.shares).sum(axis=-1).min(axis=1) / 2)


def corrected(curve: Curve) -> Array:
    """Capacity of each mix; a small part of what it can serve where the curve says nought."""
    found = capacities.capacity(curve).rate_per_s
    most = np.nanmax(curve.balance_per_s, axis=1)
    return np.where(found > 0, found, _UNKNOWN * most)


def _factors(trial: Trial, found: Found, estimates: Estimates) -> Factors:
    """Simulated over modelled at the last rate; 1 where the model has no finite value."""
    curve, mix = trial.curve, trial.mix
    rate = min(found.rate_per_s, float(np.nanmax(curve.balance_per_s[mix])))
    batch = float(batch_at(curve, mix, rate))
    factors = {}
    for (place, objective), values in estimates.items():
        alone = float(curve.follow(values)[mix, 0])
        modelled = between(curve, mix, batch, values) - alone
        seen = trial.value_s(found.outcome, place, objective)
        usable = seen > 0 and np.isfinite(modelled) and modelled > _SEEN * alone
        factors[place, objective] = max((seen - alone) / modelled, _LEAST) if usable else 1.0
    return factors
