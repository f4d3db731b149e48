"""A plan's replicas as tables: operating points, objectives, sensitivities."""

from collections.abc import Callable

from capplan.records.plan import Plan, PolicyPlan, PoolPlan
from capplan.records.service import OperatingPoint, Service
from capplan.report import numbers
from capplan.report.layout import Table


def at_peak(plan: Plan) -> list[Table]:
    """A replica of each pool: policies side by side while each has one, else a table a policy."""
    title = "A replica at peak, spares lost"
    feasible = [p for p in plan.policies if p.pools]
    if all(len(p.pools) == 1 for p in feasible):
        columns = [(p.policy, p.pools[0] if p.pools else None) for p in plan.policies]
        return [_replica(title, columns)]
    return [
        _replica(f"{title}: {p.policy}", [("+".join(pool.classes), pool) for pool in p.pools])
        for p in feasible
    ]


def _replica(title: str, columns: list[tuple[str, PoolPlan | None]]) -> Table:
    rows: tuple[tuple[str, Callable[[PoolPlan], str]], ...] = (
        ("batch (sequences)", _peak(lambda p: f"{p.batch:.1f}")),
        ("draft length", _peak(lambda p: str(p.draft_tokens))),
        ("tokens per round", _peak(lambda p: numbers.ratio(p.tokens_per_round))),
        ("target efficiency", _peak(lambda p: numbers.ratio(p.target_efficiency))),
        ("speed-up at batch", _peak(lambda p: numbers.ratio(p.speed_up_at_batch))),
        ("TPOT mean", _peak(lambda p: numbers.time(p.tpot_mean_s))),
        ("TPOT p99, worst class", _worst("tpot_p99_s")),
        ("TTFT p99, worst class", _worst("ttft_p99_s")),
        ("output tokens/s each", _peak(lambda p: numbers.count(p.output_tokens_per_s))),
        ("requests/s each, most", lambda pool: numbers.rate(pool.service.capacity_per_s)),
        ("replicas + spare", _replicas),
        ("replicas x GPUs", _gpus),
        ("prefill engines + spare", _prefill),
    )
    return Table(
        title=title,
        columns=("", *(name for name, _ in columns)),
        rows=tuple(
            (label, *(numbers.ABSENT if pool is None else show(pool) for _, pool in columns))
            for label, show in rows
            if show is not _prefill or any(pool and pool.prefill for _, pool in columns)
        ),
    )


def _peak(show: Callable[[OperatingPoint], str]) -> Callable[[PoolPlan], str]:
    return lambda pool: show(pool.at_peak)


def _worst(quantity: str) -> Callable[[PoolPlan], str]:
    def show(pool: PoolPlan) -> str:
        found = [e.value_s for e in pool.at_peak.latencies if e.quantity == quantity]
        return numbers.time(max(found)) if found else numbers.ABSENT

    return show


def _replicas(pool: PoolPlan) -> str:
    sized = pool.sizing
    return f"{numbers.count(sized.replicas_at_peak)} + {numbers.count(sized.spare_replicas)}"


def _gpus(pool: PoolPlan) -> str:
    each = pool.service.gpus_per_replica
    product = numbers.count(pool.sizing.replicas * each)
    return f"{numbers.count(pool.sizing.replicas)} x {each} = {product}"


def _prefill(pool: PoolPlan) -> str:
    engines = pool.prefill
    if engines is None:
        return numbers.ABSENT
    return f"{numbers.count(engines.replicas_at_peak)} + {numbers.count(engines.spare_replicas)}"


def latencies(plan: Plan) -> Table:
    """Each objective and what it comes to at the peak."""
    rows = []
    for traffic in plan.demand.classes:
        for quantity, objective_s in traffic.objectives.items():
            values = [_latency(p, traffic.name, quantity) for p in plan.policies]
            label = quantity.removesuffix("_s").replace("_", " ")
            rows.append((f"{traffic.name} {label}", numbers.time(objective_s), *values))
    origin = "modelled" if plan.seed is None else "simulated"
    return Table(
        title=f"Objectives at peak, spares lost ({origin})",
        columns=("", "objective", *(p.policy for p in plan.policies)),
        rows=tuple(rows),
    )


def _latency(p: PolicyPlan, traffic_class: str, quantity: str) -> str:
    found = [
        e
        for pool in p.pools
        for e in pool.at_peak.latencies
        if (e.traffic_class, e.quantity) == (traffic_class, quantity)
    ]
    if not found:
        return numbers.ABSENT
    (estimate,) = found
    return numbers.time(estimate.value_s)


def label(p: PolicyPlan, pool: PoolPlan) -> str:
    """The policy, and which classes where it has several pools."""
    return p.policy if len(p.pools) == 1 else f"{p.policy} {'+'.join(pool.classes)}"


def sensitivity(plan: Plan) -> Table:
    """What a replica's capacity gains and loses by."""
    rows = [
        (label(p, pool), *(_elasticity(pool.service, of) for of, _ in _ELASTICITIES))
        for p in plan.policies
        for pool in p.pools
    ]
    return Table(
        title="Requests a replica serves, in %, for 1 % more of",
        columns=("", *(name for _, name in _ELASTICITIES)),
        rows=tuple(rows),
    )


_ELASTICITIES = (
    ("objectives", "objectives"),
    ("output_tokens", "output"),
    ("prompt_tokens", "prompt"),
    ("tokens_per_round", "t/round"),
    ("step_s", "step"),
    ("prefill_s", "prefill"),
)


def _elasticity(service: Service, of: str) -> str:
    found = [one.value for one in service.elasticities if one.of == of]
    return f"{found[0]:+.1f}" if found else numbers.ABSENT
