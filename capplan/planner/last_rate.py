"""The highest rate that keeps every objective, by simulation."""

from dataclasses import dataclass, replace

import numpy as np

from capplan.physics.engine import Outcome
from capplan.planner.capacity import broken, capacity_of_mix
from capplan.planner.trial import Trial, objectives
from capplan.records.plan import Binding

_TOLERANCE = 0.005
_FAR, _NEAR, _WIDEST = 1.25, 1.03, 2.0
"""First steps in which a search looks for both sides of the last rate, and the widest."""
_UNKNOWN = 0.05
"""Where the balance keeps the objectives at no rate, part of what it can serve to start from."""


@dataclass(frozen=True)
class Found:
    """The last rate that keeps every objective.

    Attributes:
        rate_per_s: Nought where even a small part of what the balance serves is too much. [1/s]
        binding: The objective that breaks above it.
        outcome: Of the run at that rate; of the lowest rate tried where it is nought.
    """

    rate_per_s: float
    binding: Binding
    outcome: Outcome


SATURATED = Binding(kind="saturation", text="requests come faster than they can be served")


def worst(trial: Trial, outcome: Outcome) -> tuple[float, Binding]:
    """The objective that is used most: value over limit, and what to call it."""
    uses = [
        (trial.value_s(outcome, place, objective) / limit_s, place, objective)
        for place, objective, limit_s in objectives(trial.demand)
    ]
    use, place, objective = max(uses)
    return use, broken(trial.demand.classes[place].name, objective)


def capacity(trial: Trial, near_per_s: float | None = None) -> Found:
    """Highest rate that keeps every objective, by halving on its logarithm.

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
    start = min(predicted or _UNKNOWN * most, most)
    step = _FAR if near_per_s is None else _NEAR
    outcome = trial.run(start)
    use, binding = worst(trial, outcome)
    if use <= 1:
        kept, high = _above(trial, Found(start, SATURATED, outcome), most, step)
    else:
        kept, high = _below(trial, Found(start, binding, outcome), step)
    while kept.rate_per_s > 0 and high / kept.rate_per_s > 1 + _TOLERANCE:
        middle = float(np.sqrt(kept.rate_per_s * high))
        outcome = trial.run(middle)
        use, binding = worst(trial, outcome)
        if use <= 1:
            kept = Found(middle, kept.binding, outcome)
        else:
            high, kept = middle, replace(kept, binding=binding)
    return kept


def _above(trial: Trial, kept: Found, most: float, step: float) -> tuple[Found, float]:
    """Goes up in widening steps to the first rate that breaks an objective, or to the most."""
    while kept.rate_per_s < most:
        rate, step = min(kept.rate_per_s * step, most), min(step**2, _WIDEST)
        outcome = trial.run(rate)
        use, binding = worst(trial, outcome)
        if use > 1:
            return replace(kept, binding=binding), rate
        kept = Found(rate, SATURATED, outcome)
    return kept, most


def _below(trial: Trial, broken: Found, step: float) -> tuple[Found, float]:
    """Goes down in widening steps to the first rate that keeps them all; nought where none does."""
    lowest = broken.rate_per_s * _UNKNOWN
    while broken.rate_per_s > lowest:
        rate, step = broken.rate_per_s / step, min(step**2, _WIDEST)
        outcome = trial.run(rate)
        use, binding = worst(trial, outcome)
        if use <= 1:
            return Found(rate, broken.binding, outcome), broken.rate_per_s
        broken = Found(rate, binding, outcome)
    return replace(broken, rate_per_s=0.0), lowest
