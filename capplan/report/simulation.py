"""Prediction beside simulation, as tables."""

from collections.abc import Callable

from capplan.records.simulation import (
    Compared,
    InFlight,
    SimulatedLoad,
    SimulatedPolicy,
    SimulatedPool,
    Simulation,
    Steady,
)
from capplan.report import numbers
from capplan.report.layout import DEFINITIONS, Note, Report, Table


def report(simulation: Simulation) -> Report:
    """Everything that `capplan simulate` tells."""
    return Report(
        title=f"{simulation.forecast}: {simulation.model}, one replica simulated",
        subtitle=(
            "" if simulation.compiled else "Run without numba: the same results, more slowly.",
        ),
        tables=(
            _capacities(simulation),
            *(
                _load(_label(policy, pool), load)
                for policy in simulation.policies
                for pool in policy.pools
                for load in pool.loads
            ),
            *(
                _in_flight(_label(policy, pool), pool.in_flight)
                for policy in simulation.policies
                for pool in policy.pools
                if pool.in_flight
            ),
            _ttft(simulation),
            _tpot(simulation),
        ),
        notes=(
            Note("Caveats", tuple(f"{c.about}: {c.text}" for c in simulation.caveats)),
            Note("Definitions", (DEFINITIONS,)),
        ),
    )


def _capacities(simulation: Simulation) -> Table:
    rows = [
        (policy.policy, numbers.ABSENT, numbers.ABSENT, policy.infeasible or "")
        for policy in simulation.policies
        if not policy.pools
    ]
    rows += [
        (
            _label(policy, pool),
            numbers.rate(pool.predicted_capacity_per_s),
            _simulated(pool),
            pool.stopped_by,
        )
        for policy in simulation.policies
        for pool in policy.pools
    ]
    return Table(
        title="Most requests a replica serves within the objectives",
        columns=("", "predicted", "simulated", "which breaks first"),
        rows=tuple(rows),
    )


def _simulated(pool: SimulatedPool) -> str:
    before, after = pool.predicted_capacity_per_s, pool.simulated_capacity_per_s
    return f"{numbers.rate(after)} ({after / before - 1:+.0%})"


def _label(policy: SimulatedPolicy, pool: SimulatedPool) -> str:
    """The policy, and which classes where it has several pools."""
    if len(policy.pools) == 1:
        return policy.policy
    return f"{policy.policy} {'+'.join(pool.classes)}"


def _load(label: str, load: SimulatedLoad) -> Table:
    kept = "objectives kept" if load.keeps_objectives else "objectives MISSED"
    return Table(
        title=f"{label} at {numbers.rate(load.rate_per_s)}, {load.load:.0%} of what is "
        f"predicted: {kept}",
        columns=("", "objective", "predicted", "simulated", "interval"),
        rows=tuple(_row(compared) for compared in load.compared),
    )


def _in_flight(label: str, points: tuple[InFlight, ...]) -> Table:
    """Each number in flight in a row, the law's value and the simulated one side by side."""
    shown: tuple[tuple[Steady, Callable[[float], str]], ...] = (
        ("batch", _plain),
        ("output_tokens_per_s", numbers.count),
        ("tpot_mean_s", numbers.time),
        ("ttft_mean_s", numbers.time),
    )
    rows = []
    for point in points:
        cells = {row.quantity: row for row in point.compared}
        pairs = [
            f"{show(cells[name].predicted)} | {show(cells[name].simulated)}" for name, show in shown
        ]
        rows.append((str(point.in_flight), *pairs))
    return Table(
        title=f"{label}, so many requests in flight: law | simulated, means",
        columns=("", "batch", "tokens/s", "TPOT", "TTFT"),
        rows=tuple(rows),
    )


def _row(compared: Compared) -> tuple[str, ...]:
    show = numbers.time if compared.quantity.endswith("_s") else _plain
    name = compared.quantity.removesuffix("_s").replace("_", " ")
    label = name if compared.traffic_class is None else f"{compared.traffic_class} {name}"
    interval = ""
    if compared.low is not None and compared.high is not None:
        interval = f"{show(compared.low)} - {show(compared.high)}"
    return (
        label,
        "" if compared.objective_s is None else numbers.time(compared.objective_s),
        "no end" if compared.predicted is None else show(compared.predicted),
        show(compared.simulated),
        interval,
    )


def _ttft(simulation: Simulation) -> Table:
    rows = [
        (
            f"{policy.policy} {part.traffic_class} {part.percentile}",
            numbers.time(part.ttft_s),
            numbers.time(part.queue_s),
            numbers.time(part.prefill_s),
            numbers.time(part.interference_s),
            f"{part.preempted:.0%}",
        )
        for policy in simulation.policies
        for pool in policy.pools
        for part in pool.ttft
    ]
    return Table(
        title="Where TTFT comes from, at the last rate within the objectives",
        columns=("", "TTFT", "queue", "prefill", "interference", "preempted"),
        rows=tuple(rows),
    )


def _tpot(simulation: Simulation) -> Table:
    rows = [
        (
            f"{policy.policy} {part.traffic_class} {part.percentile}",
            numbers.time(part.tpot_s),
            numbers.time(part.target_s),
            numbers.time(part.draft_s),
            numbers.time(part.interference_s + part.preemption_s),
            numbers.signed_time(part.luck_s),
        )
        for policy in simulation.policies
        for pool in policy.pools
        for part in pool.tpot
    ]
    return Table(
        title="Where TPOT comes from, at the same rate",
        columns=("", "TPOT", "target", "drafting", "prefill", "luck"),
        rows=tuple(rows),
    )


def _plain(value: float) -> str:
    return f"{value:.1f}"
