"""The highest rate that keeps every objective, by simulation."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from capplan.physics.engine import Outcome
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve, broken, capacity_of_mix
from capplan.planner.trial import Stage, Trial, objectives, simulated
from capplan.records.service import Binding

_TOLERANCE = 0.005
_LEAST, _WIDEST = math.log(1.01), math.log(2.0)
"""Bounds of the steps in which a search looks for the other side of the last rate, logarithms."""
_UNKNOWN = 0.05
"""Where the balance keeps the objectives at no rate, part of what it can serve to start from."""
_WORTH = 1.5
"""Times as many requests from which on a search is repeated with them."""
PRECISE = 0.03
"""Half a 95 % interval of the last rate, over the rate, that is asked for where requests allow."""


@dataclass(frozen=True)
class Found:
    """The last rate that keeps every objective.

    Attributes:
        rate_per_s: Nought where even a small part of what the balance serves is too much. [1/s]
        binding: The objective that breaks above it.
        outcome: Of the run at that rate; of the lowest rate tried where it is nought.
        steepness: Elasticity of the use in the rate, around it; infinite where nothing breaks.
    """

    rate_per_s: float
    binding: Binding
    outcome: Outcome
    steepness: float = math.inf


SATURATED = Binding(kind="saturation", text="requests come faster than they can be served")


def uses(trial: Trial, outcome: Outcome) -> list[tuple[float, Binding]]:
    """Every objective, the most used first: value over limit, and what to call it."""
    found = [
        (
            trial.value_s(outcome, place, objective) / limit_s,
            broken(trial.demand.classes[place].name, objective),
        )
        for place, objective, limit_s in objectives(trial.demand)
    ]
    return sorted(found, key=lambda one: one[0], reverse=True)


def worst(trial: Trial, outcome: Outcome) -> tuple[float, Binding]:
    """The objective that is used most: value over limit, and what to call it."""
    return uses(trial, outcome)[0]


def capacity(trial: Trial, near_per_s: float | None = None) -> Found:
    """Highest rate that keeps every objective, between one that does and one that does not.

    The same requests come at every rate, faster or slower, so that chance does not make the answer
    jump.

    Args:
        trial: The replica and its requests.
        near_per_s: Where to begin, if the answer is known to be close; else at what the balance
            predicts. [1/s]
    """
    # Beyond what the batch can balance at all, a run is finite only because its requests are.
    most = float(np.nanmax(trial.curve.balance_per_s[trial.mix]))
    predicted = near_per_s or capacity_of_mix(trial.curve, trial.mix)[0]
    kept, broken = _both_sides(trial, min(predicted or _UNKNOWN * most, most), most)
    if kept is None:
        assert broken is not None
        return Found(0.0, broken.binding, broken.outcome)
    if broken is None:
        return Found(kept.rate_per_s, SATURATED, kept.outcome)
    steepness = min(max(_slope(kept, broken), 0.5), 2.0)
    kept, broken = _closer(trial, kept, broken)
    return Found(kept.rate_per_s, broken.binding, kept.outcome, steepness)


def settled(
    candidate: Candidate, curve: Curve, mix: int, stage: Stage, near_per_s: float | None = None
) -> tuple[Trial, Found]:
    """The last rate of as many requests as it takes for chance to move it by little.

    A first search says by its own interval how many those are: where rare long prompts decide, ten
    times as many as where the common requests do.

    Args:
        candidate: For the classes.
        curve: The replica under its policy.
        mix: Of the classes.
        stage: For the fewest requests and the most.
        near_per_s: As in `capacity`. [1/s]
    """
    trial = Trial.of(candidate, curve, mix, stage)
    found = capacity(trial, near_per_s)
    # Intervals shrink with the square root of the requests.
    wanted = len(trial.drawn.arrival_s) * (looseness(trial, found) / PRECISE) ** 2
    more = min(wanted, stage.effort.most_requests)
    if more < _WORTH * len(trial.drawn.arrival_s):
        return trial, found
    trial = Trial.of(candidate, curve, mix, stage, replace(stage.effort, requests=more))
    return trial, capacity(trial, found.rate_per_s)


def looseness(trial: Trial, found: Found) -> float:
    """Half the interval of the last rate, over the rate: that of the objective that binds."""
    if found.rate_per_s == 0 or found.binding.quantity is None:
        return 0.0
    names = [traffic.name for traffic in trial.demand.classes]
    place = names.index(found.binding.traffic_class or "")
    seen = simulated(trial, found.outcome, place, found.binding.quantity)
    if seen.low is None or seen.high is None:
        return 0.0
    return (seen.high - seen.low) / 2 / seen.value / found.steepness


@dataclass(frozen=True)
class _Run:
    """A rate tried, and the objective that it uses most."""

    rate_per_s: float
    use: float
    binding: Binding
    outcome: Outcome

    @classmethod
    def of(cls, trial: Trial, rate_per_s: float) -> Self:
        outcome = trial.run(rate_per_s)
        return cls(rate_per_s, *worst(trial, outcome), outcome)

    @property
    def log_use(self) -> float:
        """Of a wait without end, or none at all, only the direction says something."""
        return math.log(min(max(self.use, 0.5), 2.0))


def _both_sides(trial: Trial, start_per_s: float, most: float) -> tuple[_Run | None, _Run | None]:
    """A rate that keeps the objectives and a higher one that does not; None where none is found.

    The first step is as wide as the use is far from one, each later one wider in comparison: near
    an empty replica the use hardly moves with the rate.
    """
    last = _Run.of(trial, start_per_s)
    keeps = last.use <= 1
    end = most if keeps else start_per_s * _UNKNOWN
    power, least = 1.25, _LEAST
    while last.rate_per_s != end:
        step = math.exp(min(max(abs(last.log_use) * power, least), _WIDEST))
        rate = last.rate_per_s * step if keeps else last.rate_per_s / step
        run = _Run.of(trial, min(rate, end) if keeps else max(rate, end))
        if (run.use <= 1) != keeps:
            return (last, run) if keeps else (run, last)
        last, power, least = run, power * 2, least * 2
    return (last, None) if keeps else (None, last)


def _closer(trial: Trial, kept: _Run, broken: _Run) -> tuple[_Run, _Run]:
    """Both sides closer together, by the Illinois form of false position on logarithms."""
    low, high = kept.log_use, broken.log_use
    keeps: bool | None = None
    while not _settled(kept, broken):
        apart = math.log(broken.rate_per_s / kept.rate_per_s)
        # Half a tolerance below the crossing: a rate that keeps the objectives can be the answer.
        way = -low / (high - low) - _TOLERANCE / 2 / apart
        rate = kept.rate_per_s * math.exp(min(max(way, 0.05), 0.95) * apart)
        run = _Run.of(trial, rate)
        again, keeps = (run.use <= 1) is keeps, run.use <= 1
        if keeps:
            kept, low, high = run, run.log_use, high / (1 + again)
        else:
            broken, low, high = run, low / (1 + again), run.log_use
    return kept, broken


def _settled(kept: _Run, broken: _Run) -> bool:
    """Whether the last rate is known to the tolerance: both sides, or the way up to the limit."""
    slope = min(_slope(kept, broken), 1.0)
    close = math.log(broken.rate_per_s / kept.rate_per_s) <= _TOLERANCE
    return close or -kept.log_use <= _TOLERANCE * slope


def _slope(kept: _Run, broken: _Run) -> float:
    apart = math.log(broken.rate_per_s / kept.rate_per_s)
    return (broken.log_use - kept.log_use) / apart
