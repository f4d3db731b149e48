"""One policy from its pools to dollars."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from capplan.planner import bands
from capplan.planner import capacity as capacities
from capplan.planner.break_even import break_even
from capplan.planner.capacity import Curve
from capplan.planner.cost import cost
from capplan.planner.elasticity import elasticities
from capplan.planner.last_rate import uses
from capplan.planner.operating_point import operating_point
from capplan.planner.parts import tpot_parts, ttft_parts
from capplan.planner.placement import placement
from capplan.planner.pool import Pool, run
from capplan.planner.power import power
from capplan.planner.search import Search
from capplan.planner.trial import Stage, observed
from capplan.records.fleet import Fleet
from capplan.records.forecast import Scenarios
from capplan.records.plan import PolicyPlan, PoolPlan
from capplan.records.service import BatchLimits, Binding, OperatingPoint, Service


@dataclass(frozen=True)
class Outcome:
    """A policy's plan, and the pools that it came from; none where it is infeasible."""

    plan: PolicyPlan
    pools: tuple[Pool, ...]


def again(policy: str, pools: Sequence[Pool], known: Sequence[Outcome]) -> Outcome | None:
    """What another policy was planned to, where it has the very same pools."""
    for one in known:
        if [id(pool) for pool in one.pools] == [id(pool) for pool in pools]:
            return Outcome(one.plan.model_copy(update={"policy": policy}), one.pools)
    return None


def plan_policy(
    policy: str,
    pools: Sequence[Pool],
    search: Search,
    fleet: Fleet,
    scenarios: Scenarios | None,
) -> Outcome:
    """A policy from its pools to dollars, or the reason why no fleet serves it.

    Args:
        policy: Its name.
        pools: All on one kind of GPU.
        search: That found them.
        fleet: The hardware.
        scenarios: Of the demand.

    Raises:
        InputError: The fleet has no such GPU.
        InfeasibleError: No rack takes a node.
    """
    refused = [pool for pool in pools if pool.sized is None]
    if refused:
        why = "; ".join(dict.fromkeys(_why_not(pool) for pool in refused))
        return Outcome(PolicyPlan(policy=policy, infeasible=why), ())
    gpu = pools[0].candidate.replica.profile.deployment.gpu
    placed = placement([each for pool in pools for each in replicas(pool)], fleet, gpu)
    drawn = power(pools, search.demand, placed, fleet)
    plan = PolicyPlan(
        policy=policy,
        pools=tuple(_pool_plan(pool, search.stage) for pool in pools),
        placement=placed,
        power=drawn,
        cost=cost(search.demand, placed, drawn, fleet, gpu),
        gpu_range=bands.gpu_range(pools, placed.gpus, fleet, scenarios, search.stage),
    )
    return Outcome(plan, tuple(pools))


def replicas(pool: Pool) -> list[tuple[int, int]]:
    """Replicas of a pool and GPUs of each; engines for prompts of their own after them."""
    assert pool.sized is not None
    own = pool.sized.replicas, pool.candidate.replica.profile.deployment.gpus_per_replica
    if pool.prefill is None:
        return [own]
    return [own, (pool.prefill.replicas, pool.prefill.gpus_per_replica)]


def _pool_plan(pool: Pool, stage: Stage | None) -> PoolPlan:
    sized = pool.sized
    assert sized is not None
    rate = sized.peak_rate_per_s / sized.replicas_at_peak
    demand, mix = pool.candidate.demand, pool.mix
    if pool.trials is None or stage is None:
        point = operating_point(pool.curve, demand, pool.estimates, mix, rate)
        return PoolPlan(
            classes=pool.load.names,
            service=_service(pool),
            at_peak=point,
            sizing=sized,
            prefill=pool.prefill,
        )
    trial, _ = pool.trials[pool.decided_by]
    seen = run(pool, trial, rate, stage.starts_s)
    return PoolPlan(
        classes=pool.load.names,
        service=_service(pool),
        at_peak=operating_point(
            pool.curve, demand, pool.estimates, mix, rate, observed(trial, seen)
        ),
        sizing=sized,
        prefill=pool.prefill,
        ttft=ttft_parts(trial, seen),
        tpot=tpot_parts(trial, seen),
    )


def _service(pool: Pool) -> Service:
    curve, mix = pool.curve, pool.mix
    replica = curve.replica
    rate = float(pool.capacity_per_s[mix])
    point = _at_capacity(pool, rate)
    variant = replica.variants.index(point.draft_tokens) if curve.loaded else 0
    deployment = replica.profile.deployment
    factors = np.ones(len(curve.constraints))
    if pool.calibration is not None:
        factors = pool.calibration.by_constraint(curve)
    return Service(
        profile=replica.profile.name,
        gpu=deployment.gpu,
        gpus_per_replica=deployment.gpus_per_replica,
        drafter=replica.drafter if curve.loaded else None,
        draft_ranges=curve.ranges,
        capacity_per_s=rate,
        capacity_origin="modelled" if pool.trials is None else "simulated",
        screened_capacity_per_s=float(capacities.capacity_of_mix(curve, mix)[0]),
        at_capacity=point,
        binding=pool.binding,
        batch_limits=BatchLimits(
            memory=float(replica.memory_limit[mix, variant]),
            engine=replica.profile.limits.max_batch,
            measured=capacities.largest_measured(curve, mix),
        ),
        elasticities=elasticities(pool.candidate, curve, factors, mix),
        break_even=break_even(curve, mix),
        undrafted_classes=tuple(pool.load.names[place] for place in sorted(curve.undrafted)),
    )


def _at_capacity(pool: Pool, rate_per_s: float) -> OperatingPoint:
    """At the last rate, as simulated there where it was."""
    seen = None
    if pool.trials is not None:
        trial, found = pool.trials[pool.decided_by]
        seen = observed(trial, found.outcome)
    return operating_point(
        pool.curve, pool.candidate.demand, pool.estimates, pool.mix, rate_per_s, seen
    )


def _why_not(pool: Pool) -> str:
    """What one request alone already misses, and the nearest value that could be kept."""
    if pool.refused is not None:
        return pool.refused
    if pool.trials is not None:
        trial, found = next(
            (trial, found) for trial, found in pool.trials.values() if found.rate_per_s == 0
        )
        missed = [(use, one) for use, one in uses(trial, found.outcome) if use > 1]
        return _missed(pool, missed, "almost alone, simulated,")
    mix = int(np.argmin(pool.capacity_per_s))
    _, stopped_by = capacities.capacity_of_mix(pool.curve, mix)
    binding = capacities.binding(pool.curve, mix, stopped_by)
    if binding.kind == "memory":
        return _no_room(pool.curve, mix)
    if binding.quantity is None:
        return f"not even one request is served: {binding.text}"
    return _missed(pool, list(_missed_alone(pool.curve, mix)), "alone")


def _missed_alone(curve: Curve, mix: int) -> Iterator[tuple[float, Binding]]:
    """Every objective that the balance says one request alone to miss, and its use."""
    for one, used in zip(curve.constraints, curve.used[:, mix, 0], strict=True):
        if one.binding.quantity is not None and used > 1:
            yield float(used), one.binding


def _missed(pool: Pool, missed: Sequence[tuple[float, Binding]], how: str) -> str:
    limits_s = {traffic.name: traffic.objectives for traffic in pool.candidate.demand.classes}
    found = []
    for use, binding in missed:
        assert binding.traffic_class is not None
        assert binding.quantity is not None
        limit_s = limits_s[binding.traffic_class][binding.quantity]
        found.append(
            f"{binding.text}: {use * limit_s:.4g} s against {limit_s:.4g} s; "
            f"nearest feasible {binding.quantity}: {_rounded_up(use * limit_s)}"
        )
    return f"one request {how} misses {'; and '.join(found)}"


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
