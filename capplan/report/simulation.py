"""Prediction beside simulation, as tables."""

from capplan.records.simulation import Compared, SimulatedLoad, SimulatedPolicy, Simulation
from capplan.report import numbers
from capplan.report.content import DEFINITIONS, Note, Report, Table


def report(simulation: Simulation) -> Report:
    """Everything that `capplan simulate` tells."""
    return Report(
        title=f"{simulation.forecast}: {simulation.model}, one replica simulated",
        subtitle=(
            "" if simulation.compiled else "Run without numba: the same results, more slowly.",
        ),
        tables=(
            _capacities(simulation),
            *(_load(policy, load) for policy in simulation.policies for load in policy.loads),
            _parts(simulation),
        ),
        notes=(
            Note("Caveats", tuple(f"{c.about}: {c.text}" for c in simulation.caveats)),
            Note("Definitions", (DEFINITIONS,)),
        ),
    )


def _capacities(simulation: Simulation) -> Table:
    rows = []
    for policy in simulation.policies:
        if policy.predicted_capacity_per_s is None or policy.simulated_capacity_per_s is None:
            rows.append((policy.policy, numbers.ABSENT, numbers.ABSENT, policy.infeasible or ""))
            continue
        rows.append(
            (
                policy.policy,
                numbers.rate(policy.predicted_capacity_per_s),
                (
                    f"{numbers.rate(policy.simulated_capacity_per_s)} "
                    f"({_change(policy.predicted_capacity_per_s, policy.simulated_capacity_per_s)})"
                ),
                policy.stopped_by or "",
            )
        )
    return Table(
        title="Most requests a replica serves within the objectives",
        columns=("", "predicted", "simulated", "which breaks first"),
        rows=tuple(rows),
    )


def _load(policy: SimulatedPolicy, load: SimulatedLoad) -> Table:
    kept = "objectives kept" if load.keeps_objectives else "objectives MISSED"
    return Table(
        title=f"{policy.policy} at {numbers.rate(load.rate_per_s)}, {load.load:.0%} of what is "
        f"predicted: {kept}",
        columns=("", "objective", "predicted", "simulated", "interval"),
        rows=tuple(_row(compared) for compared in load.compared),
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
        show(compared.predicted),
        show(compared.simulated),
        interval,
    )


def _parts(simulation: Simulation) -> Table:
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
        for part in policy.ttft
    ]
    return Table(
        title="Where TTFT comes from, at the last rate within the objectives",
        columns=("", "TTFT", "queue", "prefill", "interference", "preempted"),
        rows=tuple(rows),
    )


def _plain(value: float) -> str:
    return f"{value:.1f}"


def _change(before: float, after: float) -> str:
    return f"{after / before - 1:+.0%}"
