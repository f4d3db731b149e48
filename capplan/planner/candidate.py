"""One profile and one drafter carried through every step under one policy."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from capplan.errors import InputError
from capplan.planner import capacity as capacities
from capplan.planner import coverage, latencies, policies, uncertainty
from capplan.planner.capacity import Capacity, Constraint, Curve
from capplan.planner.cost import cost
from capplan.planner.latencies import Estimates
from capplan.planner.load import Load
from capplan.planner.operating_point import operating_point
from capplan.planner.placement import placement
from capplan.planner.power import power
from capplan.planner.service import Replica
from capplan.planner.sizing import sizing
from capplan.planner.speculation import Variants
from capplan.planner.surfaces import Surfaces
from capplan.records.fleet import Fleet
from capplan.records.forecast import Scenarios
from capplan.records.plan import (
    BatchLimits,
    Demand,
    GpuRange,
    PolicyPlan,
    Service,
    Sizing,
)
from capplan.records.profile import Profile


@dataclass(frozen=True)
class Candidate:
    """A replica solved once, for every policy to choose from."""

    replica: Replica
    constraints: tuple[Constraint, ...]
    estimates: Estimates
    demand: Demand

    @classmethod
    def of(
        cls,
        profile: Profile,
        drafter: str | None,
        demand: Demand,
        lengths: frozenset[int] | None = None,
    ) -> Self:
        """Solves a replica of this profile for this demand.

        Args:
            profile: Its operating points.
            drafter: One of its drafters, or none.
            demand: The requests.
            lengths: Draft lengths to look at; None for all that are covered.

        Raises:
            InputError: The profile does not cover the demand.
        """
        load = Load.of(demand)
        surfaces = Surfaces.of(profile, profile.drafters[drafter] if drafter else None)
        complaints = coverage.complaints(profile, demand, load, surfaces)
        try:
            variants = Variants.of(profile, drafter, demand, surfaces, lengths)
        except InputError as error:
            raise InputError([*complaints, *error.complaints]) from error
        if complaints:
            raise InputError(complaints)
        # NaN stands for what was not measured and inf for waits without end: both are meant.
        with np.errstate(all="ignore"):
            replica = Replica.of(profile, drafter, load, surfaces, variants)
            estimates = latencies.estimates(replica, demand)
            constraints = capacities.constraints(replica, demand, estimates)
        return cls(replica, constraints, estimates, demand)

    def busiest_mix(self) -> int:
        """The mix of the interval with most requests."""
        load = self.replica.load
        return int(load.mix_of_interval[np.argmax(load.rate_per_s)])


@dataclass(frozen=True)
class Outcome:
    """A policy's plan, and the replica and curve that it came from."""

    plan: PolicyPlan
    candidate: Candidate
    curve: Curve


def plan_policy(
    policy: str, candidate: Candidate, fleet: Fleet, scenarios: Scenarios | None
) -> Outcome:
    """A policy from capacity to dollars, or the reason why no fleet serves it.

    Raises:
        InputError: The fleet has no such GPU, or the policy asks for what was not measured.
        InfeasibleError: No rack takes a node.
    """
    replica = candidate.replica
    curve = policies.choose(policy, replica, candidate.constraints, candidate.busiest_mix())
    found = capacities.capacity(curve)
    if not found.rate_per_s.all():
        why = _why_not(curve, found, candidate.demand)
        return Outcome(PolicyPlan(policy=policy, infeasible=why), candidate, curve)
    demand, deployment = candidate.demand, replica.profile.deployment
    sized = sizing(replica.load, found.rate_per_s, demand.peak_minute_over_mean, fleet.rules)
    placed = placement(sized.replicas, deployment.gpus_per_replica, fleet, deployment.gpu)
    drawn = power(curve, demand, sized, placed, fleet)
    mix = int(replica.load.mix_of_interval[sized.peak_interval])
    plan = PolicyPlan(
        policy=policy,
        service=_service(curve, found, candidate, mix),
        at_peak=operating_point(
            curve,
            demand,
            candidate.estimates,
            mix,
            sized.peak_rate_per_s / sized.replicas_at_peak,
        ),
        sizing=sized,
        placement=placed,
        power=drawn,
        cost=cost(demand, placed, drawn, fleet, deployment.gpu),
        gpu_range=_gpu_range(candidate, curve, sized, fleet, scenarios),
    )
    return Outcome(plan, candidate, curve)


def same_engine(curve: Curve, profile: Profile, demand: Demand) -> tuple[Candidate, Curve]:
    """A replica with the engine's settings as they are, for another profile or demand."""
    drafter = curve.replica.drafter if curve.loaded else None
    lengths = frozenset(draft.draft_tokens for draft in curve.ranges)
    there = Candidate.of(profile, drafter, demand, lengths)
    return there, Curve.of(there.replica, there.constraints, curve.ranges, loaded=curve.loaded)


def _service(curve: Curve, found: Capacity, candidate: Candidate, mix: int) -> Service:
    replica = curve.replica
    rate = float(found.rate_per_s[mix])
    point = operating_point(curve, candidate.demand, candidate.estimates, mix, rate)
    variant = replica.variants.index(point.draft_tokens) if curve.loaded else 0
    deployment = replica.profile.deployment
    return Service(
        profile=replica.profile.name,
        gpu=deployment.gpu,
        gpus_per_replica=deployment.gpus_per_replica,
        drafter=replica.drafter if curve.loaded else None,
        draft_ranges=curve.ranges,
        capacity_per_s=rate,
        at_capacity=point,
        binding=capacities.binding(curve, mix, int(found.stopped_by[mix])),
        batch_limits=BatchLimits(
            memory=float(replica.memory_limit[mix, variant]),
            engine=replica.profile.limits.max_batch,
            measured=capacities.largest_measured(curve, mix),
        ),
    )


def _gpu_range(
    candidate: Candidate, curve: Curve, sized: Sizing, fleet: Fleet, scenarios: Scenarios | None
) -> GpuRange:
    """GPUs of the peak with the same engine settings, at both ends of the bands.

    The plan lies inside by construction: an end that rounding carries past it is the plan's own.
    """
    deployment = candidate.replica.profile.deployment
    own = placement(sized.replicas, deployment.gpus_per_replica, fleet, deployment.gpu).gpus
    low = _gpus_at("good", candidate, curve, sized, fleet, scenarios)
    high = _gpus_at("bad", candidate, curve, sized, fleet, scenarios)
    return GpuRange(
        low_gpus=own if low is None else min(low, own),
        high_gpus=None if high is None else max(high, own),
    )


def _gpus_at(
    end: uncertainty.End,
    candidate: Candidate,
    curve: Curve,
    sized: Sizing,
    fleet: Fleet,
    scenarios: Scenarios | None,
) -> int | None:
    replica = candidate.replica
    profile = uncertainty.profile_at(replica.profile, end)
    demand = uncertainty.peak_at(candidate.demand, sized.peak_interval, scenarios, end)
    there, same = same_engine(curve, profile, demand)
    found = capacities.capacity(same)
    if not found.rate_per_s.all():
        return None
    again = sizing(there.replica.load, found.rate_per_s, demand.peak_minute_over_mean, fleet.rules)
    deployment = profile.deployment
    return placement(again.replicas, deployment.gpus_per_replica, fleet, deployment.gpu).gpus


def _why_not(curve: Curve, found: Capacity, demand: Demand) -> str:
    """What one request alone already misses, and the nearest value that could be kept."""
    mix = int(np.argmin(found.rate_per_s))
    binding = capacities.binding(curve, mix, int(found.stopped_by[mix]))
    if binding.kind == "memory":
        return _no_room(curve, mix)
    if binding.quantity is None:
        return f"not even one request is served: {binding.text}"
    traffic = next(c for c in demand.classes if c.name == binding.traffic_class)
    limit_s = traffic.objectives[binding.quantity]
    value_s = float(curve.used[found.stopped_by[mix], mix, 0]) * limit_s
    return (
        f"one request alone misses {binding.text}: {value_s:.4g} s against {limit_s:.4g} s; "
        f"nearest feasible {binding.quantity}: {_rounded_up(value_s)}"
    )


def _no_room(curve: Curve, mix: int) -> str:
    replica, variant = curve.replica, int(curve.variant[0])
    held, cache = float(replica.held_tokens[mix, variant]), float(replica.cache_tokens[variant])
    needed = replica.profile.memory.kv_capacity_tokens * held / max(cache, 1.0)
    return (
        f"not even one request fits: a sequence, with room for longer ones, holds {held:,.0f} "
        f"tokens and the cache {cache:,.0f}; nearest feasible kv_capacity_tokens: {needed:,.0f}"
    )


def _rounded_up(value: float) -> str:
    """Four figures, never below the value: what is suggested must hold."""
    digits = 3 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits * (1 - 1e-12)) / 10.0**digits:.4g}"
