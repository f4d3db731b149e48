"""Watts of a placement under its load, interval by interval."""

import numpy as np
from numpy.typing import NDArray

from capplan.physics import lengths
from capplan.physics.surface import Array
from capplan.planner.capacity import Curve
from capplan.planner.demand import output_tokens
from capplan.planner.operating_point import batch_at
from capplan.planner.placement import node_for
from capplan.records.fleet import Fleet, Gpu, Node
from capplan.records.plan import Demand, Placement, PowerDraw, Sizing


def power(
    curve: Curve, demand: Demand, sizing: Sizing, placement: Placement, fleet: Fleet
) -> PowerDraw | None:
    """Power with every bought replica running and sharing the load; None where watts are unknown.

    Only facility power and energy carry the site's PUE.
    """
    idle = curve.replica.profile.power
    if idle is None or curve.replica.surfaces.power is None:
        return None
    load = curve.replica.load
    node = node_for(fleet, curve.replica.profile.deployment.gpu)
    gpu = fleet.gpus[node.gpu]
    # The busiest minute goes last, as one more interval.
    rates = np.append(load.rate_per_s, sizing.peak_rate_per_s) / sizing.replicas
    mixes = np.append(load.mix_of_interval, load.mix_of_interval[sizing.peak_interval])
    fleet_w = _it_w(_gpu_w(curve, idle.idle_w, mixes, rates), placement, node, gpu, idle.idle_w)
    it_w, peak_w = fleet_w[:-1], float(fleet_w[-1])
    mean_w = float(it_w.mean())
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
        np.array(replica.variants.draft_tokens)[curve.variant] + 1,
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


def _it_w(gpu_w: Array, placement: Placement, node: Node, gpu: Gpu, idle_w: float) -> Array:
    """Watts of all nodes: GPUs in replicas, stranded GPUs at rest, and the rest of each node."""
    stranded = placement.gpus_stranded * idle_w
    use = np.clip((gpu_w - idle_w) / max(gpu.tdp_w - idle_w, 1.0), 0.0, 1.0)
    others = node.other_idle_w + use * (node.other_load_w - node.other_idle_w)
    return np.asarray(gpu_w * placement.gpus_in_replicas + stranded + others * placement.nodes)
