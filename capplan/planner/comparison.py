"""Prediction beside simulation: a policy at several loads, and where each puts the last rate."""

import numpy as np

from capplan.physics.engine import Indices, Outcome, Simulate
from capplan.physics.percentiles import Percentile, mean, percentile
from capplan.planner.candidate import Outcome as Planned
from capplan.planner.capacity import capacity_of_mix
from capplan.planner.latencies import PERCENTILES
from capplan.planner.operating_point import operating_point
from capplan.planner.trial import Arrivals, Trial, capacity, gap_percentile, objectives
from capplan.records.plan import LatencyEstimate
from capplan.records.simulation import Compared, SimulatedLoad, SimulatedPolicy, TtftParts


def compare(
    planned: Planned,
    loads: tuple[float, ...],
    simulate: Simulate,
    arrivals: Arrivals,
    seed: int,
) -> SimulatedPolicy:
    """One policy on its peak's mix, at parts of the predicted capacity.

    Args:
        planned: The policy's plan.
        loads: Rates over the predicted capacity.
        simulate: Runs requests through an engine.
        arrivals: Draws arrival times.
        seed: Of all draws.
    """
    plan, curve = planned.plan, planned.curve
    profile = curve.replica.profile.name
    if plan.sizing is None:
        return SimulatedPolicy(policy=plan.policy, profile=profile, infeasible=plan.infeasible)
    mix = int(curve.replica.load.mix_of_interval[plan.sizing.peak_interval])
    trial = Trial.of(planned.candidate, curve, mix, simulate, arrivals, seed)
    predicted, _ = capacity_of_mix(curve, mix)
    found, stopped_by = capacity(trial)
    runs = [(load, trial.run(load * predicted)) for load in loads]
    return SimulatedPolicy(
        policy=plan.policy,
        profile=profile,
        predicted_capacity_per_s=predicted,
        simulated_capacity_per_s=found,
        stopped_by=stopped_by,
        loads=tuple(_load(planned, trial, load, predicted, run) for load, run in runs),
        ttft=_parts(trial, trial.run(found)) if found > 0 else (),
    )


def _load(
    planned: Planned, trial: Trial, load: float, predicted: float, run: Outcome
) -> SimulatedLoad:
    rate = load * predicted
    point = operating_point(trial.curve, trial.demand, planned.candidate.estimates, trial.mix, rate)
    rows = [
        Compared(
            quantity="batch", predicted=point.batch, simulated=run.mean_batch, low=None, high=None
        ),
        _row("tpot_mean_s", None, point.tpot_mean_s, _tpot_mean(trial, run), None),
    ]
    rows += [_latency(trial, run, estimate) for estimate in point.latencies]
    return SimulatedLoad(
        rate_per_s=rate,
        load=load,
        requests=len(trial.drawn.arrival_s),
        compared=tuple(rows),
        keeps_objectives=all(
            trial.value_s(run, place, objective) <= limit_s
            for place, objective, limit_s in objectives(trial.demand)
        ),
    )


def _tpot_mean(trial: Trial, run: Outcome) -> Percentile:
    """Decoding time over tokens after the first: the mean over tokens, as the planner's is."""
    inside = np.any([trial.counted(place) for place in range(len(trial.demand.classes))], axis=0)
    after = trial.drawn.output_tokens[inside] - 1
    if after.sum() == 0:
        return Percentile(0.0, None, None)
    weighted = run.decode_s[inside] / after.mean()
    return mean(weighted)


def _latency(trial: Trial, run: Outcome, estimate: LatencyEstimate) -> Compared:
    metric, name, _ = estimate.quantity.rsplit("_", 2)
    place = [traffic.name for traffic in trial.demand.classes].index(estimate.traffic_class)
    if metric == "chunk_gap":
        seen = Percentile(gap_percentile(run, PERCENTILES[name]), None, None)
    else:
        seen = percentile(trial.samples(run, place, metric), PERCENTILES[name])
    return _row(
        estimate.quantity, estimate.traffic_class, estimate.value_s, seen, estimate.objective_s
    )


def _row(
    quantity: str,
    traffic_class: str | None,
    predicted: float,
    seen: Percentile,
    objective_s: float | None,
) -> Compared:
    return Compared(
        quantity=quantity,
        traffic_class=traffic_class,
        predicted=predicted,
        simulated=seen.value,
        low=seen.low,
        high=seen.high,
        objective_s=objective_s,
    )


def _parts(trial: Trial, run: Outcome) -> tuple[TtftParts, ...]:
    """Time to first token of each class at its median and 99th percentile, taken apart."""
    parts = []
    for place, traffic in enumerate(trial.demand.classes):
        here = np.flatnonzero(trial.counted(place))
        if len(here) == 0:
            continue
        order = here[np.argsort(run.ttft_s[here])]
        parts.append(_part(run, _around(order, 0.45, 0.55), traffic.name, "p50"))
        parts.append(_part(run, _around(order, 0.985, 0.995), traffic.name, "p99"))
    return tuple(parts)


def _around(order: Indices, low: float, high: float) -> Indices:
    first = int(low * len(order))
    return order[first : max(int(high * len(order)), first + 1)]


def _part(run: Outcome, near: Indices, name: str, label: str) -> TtftParts:
    ttft = float(run.ttft_s[near].mean())
    queue = float(run.queue_s[near].mean())
    alone = float(run.prefill_alone_s[near].mean())
    return TtftParts(
        traffic_class=name,
        percentile="p50" if label == "p50" else "p99",
        ttft_s=ttft,
        queue_s=queue,
        prefill_s=alone,
        interference_s=max(ttft - queue - alone, 0.0),
        preempted=float((run.preemptions[near] > 0).mean()),
    )
