"""The ways in which classes could be served together, the most promising first."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from capplan.planner import capacity as capacities
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.sizing import unrounded
from capplan.records.fleet import Rules

_MOST = 3
"""Ways that are simulated, for each pool and policy."""
AS_GOOD = 1.005
"""Half a percent more GPUs is as good: the simpler way goes first."""


@dataclass(frozen=True)
class Choice:
    """One way, and what the balance alone says of it.

    Attributes:
        mix: The mix of classes that decides.
        replicas: Before rounding, infinite where no number suffices.
    """

    candidate: Candidate
    curve: Curve
    mix: int
    replicas: float

    @property
    def gpus_per_replica(self) -> int:
        """GPUs that one replica takes."""
        return self.candidate.replica.profile.deployment.gpus_per_replica

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for ways that are the same, whichever policy asks."""
        replica = self.candidate.replica
        drafter = replica.drafter if self.curve.loaded else None
        return replica.profile.name, drafter, self.curve.ranges


def choices(policy: str, candidates: list[Candidate], rules: Rules) -> list[Choice]:
    """The best few ways by the balance; by load, serving plainly is always among them.

    Args:
        policy: plain, always, always:N or by-load.
        candidates: Replicas solved for the same classes.
        rules: For the headroom.
    """
    drafted = [c for c in candidates if c.replica.drafter is not None]
    if policy == "plain":
        return _first(_ways(policy, candidates, rules), _MOST)
    if policy == "by-load":
        plain = _first(_ways("plain", drafted, rules), 1)
        return plain + _first(_ways(policy, drafted, rules), _MOST - 1)
    return _first(_ways(policy, drafted, rules), _MOST)


def best(ways: Iterable[tuple[Choice, float]]) -> tuple[Choice, float]:
    """The first of those that need as good as the fewest GPUs."""
    found = list(ways)
    least = min(gpus for _, gpus in found)
    return next((choice, gpus) for choice, gpus in found if gpus <= AS_GOOD * least)


def _ways(policy: str, candidates: list[Candidate], rules: Rules) -> list[Choice]:
    return [
        _choice(candidate, curve, rules)
        for candidate in candidates
        for curve in policies.curves(policy, candidate.replica, candidate.constraints)
    ]


def _choice(candidate: Candidate, curve: Curve, rules: Rules) -> Choice:
    load, minute = candidate.replica.load, candidate.demand.peak_minute_over_mean
    needed = unrounded(load, capacities.capacity(curve).rate_per_s, minute, rules)
    peak = int(np.argmax(needed))
    return Choice(candidate, curve, int(load.mix_of_interval[peak]), float(needed[peak]))


def _first(ways: list[Choice], most: int) -> list[Choice]:
    """The best, then the rest by what they need; each way once."""
    known = list({way.key: way for way in ways}.values())
    if not known:
        return []
    leader, _ = best((way, way.replicas * way.gpus_per_replica) for way in known)
    others = sorted(
        (way for way in known if way is not leader), key=lambda w: w.replicas * w.gpus_per_replica
    )
    return [leader, *others][:most]
