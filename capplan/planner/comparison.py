"""Prediction beside simulation: pools at several rates, and where each puts the last rate."""

from collections.abc import Sequence

from capplan.physics.engine import Outcome
from capplan.physics.percentiles import Percentile
from capplan.planner.capacity import capacity_of_mix
from capplan.planner.last_rate import settled
from capplan.planner.operating_point import operating_point
from capplan.planner.parts import tpot_parts, ttft_parts
from capplan.planner.pool import Pool, run
from capplan.planner.trial import Stage, Trial, objectives, simulated_latencies, tpot_mean
from capplan.records.service import OperatingPoint
from capplan.records.simulation import Compared, InFlight, SimulatedLoad, SimulatedPool


def compare(
    pool: Pool, loads: Sequence[float], stage: Stage, in_flight: tuple[InFlight, ...] = ()
) -> SimulatedPool:
    """A pool on its peak's mix, at parts of the capacity that the balance predicts.

    Args:
        pool: Sized by the balance alone.
        loads: Rates over the predicted capacity.
        stage: To simulate with.
        in_flight: Closed loops to show beside.
    """
    curve, mix = pool.curve, pool.mix
    predicted, _ = capacity_of_mix(curve, mix)
    points = [
        operating_point(curve, pool.candidate.demand, pool.estimates, mix, load * predicted)
        for load in loads
    ]
    found = compare_points(pool, predicted, points, stage)
    return found.model_copy(update={"in_flight": in_flight})


def compare_points(
    pool: Pool, predicted_per_s: float, points: Sequence[OperatingPoint], stage: Stage
) -> SimulatedPool:
    """A pool at rates for which something was predicted.

    Args:
        pool: Its replica and requests.
        predicted_per_s: The last rate that is said to keep the objectives. [1/s]
        points: What is said at each rate.
        stage: To simulate with.
    """
    trial, found = settled(pool.candidate, pool.curve, pool.mix, stage)
    kept = found.rate_per_s > 0
    return SimulatedPool(
        classes=pool.load.names,
        profile=pool.candidate.replica.profile.name,
        predicted_capacity_per_s=predicted_per_s,
        simulated_capacity_per_s=found.rate_per_s,
        stopped_by=found.binding.text,
        loads=tuple(
            _load(trial, point, predicted_per_s, run(pool, trial, point.rate_per_s, stage.starts_s))
            for point in points
        ),
        ttft=ttft_parts(trial, found.outcome) if kept else (),
        tpot=tpot_parts(trial, found.outcome) if kept else (),
    )


def _load(
    trial: Trial, point: OperatingPoint, predicted_per_s: float, seen: Outcome
) -> SimulatedLoad:
    predicted = {(one.traffic_class, one.quantity): one.value_s for one in point.latencies}
    rows = [
        _row("batch", None, point.batch, Percentile(seen.mean_batch, None, None), None),
        _row("tpot_mean_s", None, point.tpot_mean_s, tpot_mean(trial, seen), None),
    ]
    rows += [
        _row(
            one.quantity,
            one.traffic_class,
            predicted.get((one.traffic_class, one.quantity)),
            Percentile(one.value_s, one.low_s, one.high_s),
            one.objective_s,
        )
        for one in simulated_latencies(trial, seen)
    ]
    return SimulatedLoad(
        rate_per_s=point.rate_per_s,
        load=point.rate_per_s / predicted_per_s,
        requests=len(trial.drawn.arrival_s),
        compared=tuple(rows),
        keeps_objectives=all(
            trial.value_s(seen, place, objective) <= limit_s
            for place, objective, limit_s in objectives(trial.demand)
        ),
    )


def _row(
    quantity: str,
    traffic_class: str | None,
    predicted: float | None,
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
