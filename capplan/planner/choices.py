"""The ways in which classes could be served together, the most promising first."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from capplan.errors import InfeasibleError
from capplan.planner import capacity as capacities
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.dedicated_screen import screened_prefill_pool
from capplan.planner.sizing import unrounded, whole
from capplan.records.fleet import Rules
from capplan.records.plan import PrefillPool

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
        alone: What one request alone takes of the tightest limit: over one where none suffices.
        prefill: Engines for prompts at the peak, where these have engines of their own.
    """

    candidate: Candidate
    curve: Curve
    mix: int
    replicas: float
    alone: float
    prefill: PrefillPool | None = None

    @property
    def gpus_per_replica(self) -> int:
        """GPUs that one replica takes."""
        return self.candidate.replica.profile.deployment.gpus_per_replica

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for ways that are the same, whichever policy asks."""
        replica = self.candidate.replica
        drafter = replica.drafter if self.curve.loaded else None
        ways = self.curve.ranges, self.curve.undrafted, self.prefill is not None
        return replica.profile.name, drafter, *ways

    def gpus(self, replicas: float) -> float:
        """GPUs before rounding, of this many replicas and the engines for their prompts."""
        prefill = self.prefill
        beside = 0 if prefill is None else prefill.replicas_at_peak * prefill.gpus_per_replica
        return replicas * self.gpus_per_replica + beside


def choices(policy: str, candidates: list[Candidate], rules: Rules) -> list[Choice]:
    """The best few ways by the balance; by load, serving plainly is always among them.

    Args:
        policy: plain, always, always:N or by-load.
        candidates: Replicas solved for the same classes; those that draft in part after the whole.
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
    """The first of those that need as good as the fewest GPUs; if none serves, the closest to."""
    found = list(ways)
    least = min(gpus for _, gpus in found)
    if least == np.inf:
        return min(found, key=lambda one: one[0].alone)
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
    mix = int(load.mix_of_interval[peak])
    alone = float(np.nanmax(curve.used[:, mix, 0]))
    choice = Choice(candidate, curve, mix, float(needed[peak]), alone)
    if load.handover is None or not np.isfinite(choice.replicas):
        return choice
    return _with_prefill(choice, float(load.rate_per_s[peak]) * minute, rules)


def _with_prefill(choice: Choice, rate_per_s: float, rules: Rules) -> Choice:
    own_per_s = rate_per_s / (1 - rules.headroom) / whole(choice.replicas, rules)
    try:
        prefill = screened_prefill_pool(
            choice.curve, choice.candidate.demand, choice.mix, own_per_s, rate_per_s, rules
        )
    except InfeasibleError:
        return replace(choice, replicas=np.inf)
    return replace(choice, prefill=prefill)


def _first(ways: list[Choice], most: int) -> list[Choice]:
    """The best, then the rest by what they need; each way once."""
    first: dict[tuple[object, ...], Choice] = {}
    for way in ways:
        first.setdefault(way.key, way)
    known = list(first.values())
    if not known:
        return []
    leader, _ = best((way, way.gpus(way.replicas)) for way in known)
    others = sorted(
        (way for way in known if way is not leader), key=lambda way: way.gpus(way.replicas)
    )
    return [leader, *others][:most]
