"""Watts of a placement under its load, interval by interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capplan.physics import lengths
from capplan.physics.surface import Array
from capplan.planner.capacity import Curve
from capplan.planner.dedicated import prefill_gpu_w
from capplan.planner.demand import output_tokens
from capplan.planner.operating_point import batch_at
from capplan.planner.placement import node_for
from capplan.planner.pool import Pool
from capplan.records.fleet import Fleet, Gpu, Node
from capplan.records.plan import Demand, Placement, PowerDraw


def power(
    pools: Sequence[Pool], demand: Demand, placement: Placement, fleet: Fleet
) -> PowerDraw | None:
    """Power with every bought replica running and sharing the load; None where watts are unknown.

    Only facility power and energy carry the site's PUE.

    Args:
        pools: All on the same kind of GPU.
        demand: All classes.
        placement: Of all pools.
        fleet: The hardware.
    """
    deployments = [pool.candidate.replica for pool in pools]
    if any(r.profile.power is None or r.surfaces.power is None for r in deployments):
        return None
    if any(r.load.handover and r.load.handover.surfaces.prefill_power is None for r in deployments):
        return None
    node = node_for(fleet, deployments[0].profile.deployment.gpu)
    gpu = fleet.gpus[node.gpu]
    drawn, busiest = (
        [
            watts
            for pool in pools
            for watts in (_pool_w(pool, factor), _prefill_pool_w(pool, factor))
        ]
        for factor in (1.0, demand.peak_minute_over_mean)
    )
    it_w = _it_w(drawn, placement, node, gpu)
    busiest_w = _it_w(busiest, placement, node, gpu)
    peak_w, mean_w = float(busiest_w.max()), float(it_w.mean())
    energy_j = mean_w * fleet.site.pue * len(it_w) * demand.step_s
    return PowerDraw(
        it_w=tuple(it_w.tolist()),
        peak_it_w=peak_w,
        mean_it_w=mean_w,
        peak_facility_w=peak_w * fleet.site.pue,
        mean_facility_w=mean_w * fleet.site.pue,
        nameplate_w=placement.nodes * node.nameplate_w,
        tdp_w=placement.gpus * gpu.tdp_w,
        facility_energy_j=energy_j,
        facility_energy_j_per_token=energy_j / output_tokens(demand),
    )


@dataclass(frozen=True)
class _PoolWatts:
    """GPUs of a pool, what one draws at rest, and what one draws over time. [intervals]."""

    gpus: int
    idle_w: float
    gpu_w: Array


def _pool_w(pool: Pool, factor: float) -> _PoolWatts:
    """Watts of a pool with its rates multiplied."""
    replica, sized = pool.candidate.replica, pool.sized
    assert sized is not None
    assert replica.profile.power is not None
    idle_w = replica.profile.power.idle_w
    rates = pool.load.rate_per_s * factor / sized.replicas
    gpus = sized.replicas * replica.profile.deployment.gpus_per_replica
    return _PoolWatts(gpus, idle_w, _gpu_w(pool.curve, idle_w, pool.load.mix_of_interval, rates))


def _prefill_pool_w(pool: Pool, factor: float) -> _PoolWatts:
    """The same of engines for prompts of their own; of no GPU where there are none."""
    load = pool.load
    if pool.prefill is None or load.handover is None:
        return _PoolWatts(0, 0.0, np.zeros(len(load.rate_per_s)))
    idle = load.handover.profile.power
    gpu_w = prefill_gpu_w(pool.prefill, load, factor)
    assert idle is not None
    assert gpu_w is not None
    gpus = pool.prefill.replicas * pool.prefill.gpus_per_replica
    return _PoolWatts(gpus, idle.idle_w, gpu_w)


def _gpu_w(curve: Curve, idle_w: float, mixes: NDArray[np.intp], rates: Array) -> Array:
    """Mean watts of one GPU of a replica at each rate. [intervals].

    Prefill takes λ ΔT of the time. In the rest the engine steps while anybody decodes, which with
    a mean batch B is 1 − exp(−B) of it, the number of sequences being Poisson while they do not
    crowd each other.
    """
    replica = curve.replica
    prefill_s = curve.follow(replica.prefill.engine_s(replica.load.shares))
    step_w, prefill_w = _step_w(curve), _prefill_w(curve)
    watts = np.zeros(len(rates))
    for mix in np.unique(mixes):
        here = mixes == mix
        batch = batch_at(curve, mix, rates[here])
        prefill = rates[here] * np.interp(batch, replica.batch, prefill_s[mix])
        decode = (1 - prefill) * -np.expm1(-batch)
        watts[here] = (
            idle_w
            + decode * (np.interp(batch, replica.batch, step_w[mix]) - idle_w)
            + prefill * (np.interp(batch, replica.batch, prefill_w[mix]) - idle_w)
        )
    return watts


def _step_w(curve: Curve) -> Array:
    """Watts of a GPU while it decodes or verifies, by mix and batch. [M, B]."""
    replica, power = curve.replica, curve.replica.surfaces.power
    assert power is not None
    return power.at(
        power.clamped(0, replica.batch),
        power.clamped(1, replica.context_tokens[:, curve.variant]),
        replica.query_tokens[:, curve.variant],
    )


def _prefill_w(curve: Curve) -> Array:
    """Watts of a GPU in a prefill chunk of the mix's mean prompt; a step's where not known."""
    replica, power = curve.replica, curve.replica.surfaces.prefill_power
    if power is None:
        return _step_w(curve)
    prompt = replica.load.shares @ (replica.load.prefill_tokens @ lengths.WEIGHTS)
    limit = replica.prefill.chunk_limit_tokens[curve.variant, np.arange(len(curve.variant))]
    chunk = power.clamped(0, np.minimum(prompt[:, None], limit), above=True)
    return power.at(chunk, power.axes[1][0])


def _it_w(pools: list[_PoolWatts], placement: Placement, node: Node, gpu: Gpu) -> Array:
    """Watts of all nodes: GPUs in replicas, stranded GPUs at rest, and the rest of each node."""
    stranded = placement.gpus_stranded * max(pool.idle_w for pool in pools)
    gpus_w = np.sum([pool.gpus * pool.gpu_w for pool in pools], axis=0)
    idle_w = sum(pool.gpus * pool.idle_w for pool in pools)
    span_w = max(placement.gpus_in_replicas * gpu.tdp_w - idle_w, placement.gpus_in_replicas)
    use = np.clip((gpus_w - idle_w) / span_w, 0.0, 1.0)
    others = node.other_idle_w + use * (node.other_load_w - node.other_idle_w)
    return np.asarray(gpus_w + stranded + others * placement.nodes)
