"""GPUs with every stated band at its good end, and at its bad end."""

from collections.abc import Sequence

import numpy as np

from capplan.errors import InfeasibleError
from capplan.physics.surface import Array
from capplan.planner import capacity as capacities
from capplan.planner import uncertainty
from capplan.planner.candidate import Candidate, same_engine
from capplan.planner.capacity import Curve
from capplan.planner.dedicated_screen import screened_prefill_pool
from capplan.planner.handover import Handover
from capplan.planner.last_rate import capacity
from capplan.planner.placement import placement
from capplan.planner.pool import Pool
from capplan.planner.sizing import sizing
from capplan.planner.trial import QUICK, Stage, Trial
from capplan.records.fleet import Fleet
from capplan.records.forecast import Scenarios
from capplan.records.plan import GpuRange

_TRUSTED = 0.10
"""Error of the corrected curve at the bad end up to which it serves at both."""

Replicas = tuple[int, int]
"""How many, and GPUs of each."""


def gpu_range(
    pools: Sequence[Pool],
    planned_gpus: int,
    fleet: Fleet,
    scenarios: Scenarios | None,
    stage: Stage | None,
) -> GpuRange:
    """GPUs of the peak with the same engine settings, at both ends of the bands.

    The corrected curve is held to a simulation at the bad end; where it errs by more than a tenth,
    both ends are simulated. The plan lies inside by construction: an end that rounding carries
    past it is the plan's own.
    """
    good, bad = zip(*(_ends(pool, fleet, scenarios, stage) for pool in pools), strict=True)
    low, high = _gpus(good, fleet, pools), _gpus(bad, fleet, pools)
    return GpuRange(
        low_gpus=planned_gpus if low is None else min(low, planned_gpus),
        high_gpus=None if high is None else max(high, planned_gpus),
    )


def _gpus(ends: Sequence[list[Replicas] | None], fleet: Fleet, pools: Sequence[Pool]) -> int | None:
    feasible = [end for end in ends if end is not None]
    if len(feasible) < len(ends):
        return None
    gpu = pools[0].candidate.replica.profile.deployment.gpu
    return placement([each for end in feasible for each in end], fleet, gpu).gpus


def _ends(
    pool: Pool, fleet: Fleet, scenarios: Scenarios | None, stage: Stage | None
) -> tuple[list[Replicas] | None, list[Replicas] | None]:
    """Replicas of a pool at the good and at the bad end; None where no number suffices."""
    good, bad = (_replica_at(pool, end, fleet, scenarios) for end in ("good", "bad"))
    rates = [_modelled(pool, curve) for _, curve in (good, bad)]
    if stage is not None:
        seen = _simulated(*bad, stage)
        if abs(seen / rates[1][0] - 1) > _TRUSTED:
            rates = [_simulated(*good, stage), seen]
    return _sized(good, rates[0], fleet), _sized(bad, rates[1], fleet)


def _replica_at(
    pool: Pool, end: uncertainty.End, fleet: Fleet, scenarios: Scenarios | None
) -> tuple[Candidate, Curve]:
    assert pool.sized is not None
    profile = uncertainty.profile_at(pool.candidate.replica.profile, end)
    demand = uncertainty.peak_at(pool.candidate.demand, pool.sized.peak_interval, scenarios, end)
    handover = pool.load.handover
    if handover is not None:
        handover = Handover.of(uncertainty.profile_at(handover.profile, end), profile, fleet)
    return same_engine(pool.curve, profile, demand, handover)


def _modelled(pool: Pool, curve: Curve) -> Array:
    if pool.calibration is None:
        return capacities.capacity(curve).rate_per_s
    return pool.calibration.capacity_per_s(curve)


def _simulated(candidate: Candidate, curve: Curve, stage: Stage) -> Array:
    return np.array([capacity(Trial.of(candidate, curve, 0, stage, QUICK)).rate_per_s])


def _sized(at: tuple[Candidate, Curve], rate_per_s: Array, fleet: Fleet) -> list[Replicas] | None:
    if not rate_per_s.all():
        return None
    candidate, curve = at
    replica, rules = candidate.replica, fleet.rules
    minute = candidate.demand.peak_minute_over_mean
    sized = sizing(replica.load, rate_per_s, minute, rules)
    own = sized.replicas, replica.profile.deployment.gpus_per_replica
    if replica.load.handover is None:
        return [own]
    peak = sized.peak_rate_per_s
    each = peak / (1 - rules.headroom) / sized.replicas_at_peak
    try:
        prefill = screened_prefill_pool(curve, candidate.demand, 0, each, peak, rules)
    except InfeasibleError:
        return None
    return [own, (prefill.replicas, prefill.gpus_per_replica)]
