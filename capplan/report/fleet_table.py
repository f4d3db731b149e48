"""A plan's fleet as a table: GPUs, racks, power and money."""

from collections.abc import Callable

from capplan.records.plan import Plan, PolicyPlan, Portfolio
from capplan.report import numbers
from capplan.report.layout import Report, Table

Cell = Callable[[PolicyPlan], str]


def fleet_table(plan: Plan) -> Table:
    """What is bought, drawn and paid, policies side by side."""
    rows: tuple[tuple[str, Cell], ...] = (
        ("GPUs bought (range)", _bought),
        ("nodes / racks", _nodes),
        ("IT power, peak", _power(lambda p: p.peak_it_w)),
        ("IT power, average", _power(lambda p: p.mean_it_w)),
        ("site power, average", _power(lambda p: p.mean_facility_w)),
        ("site energy a day", lambda p: _energy_a_day(plan, p)),
        ("site J / output token", _energy_a_token),
        ("$ an hour", _usd_an_hour),
        ("$ / M output tokens", _usd_a_token),
    )
    return Table(
        title="Fleet over the whole forecast, each policy at its own best",
        columns=("", *(p.policy for p in plan.policies)),
        rows=tuple((label, *(cell(p) for p in plan.policies)) for label, cell in rows),
    )


def _power(pick: Callable[..., float]) -> Cell:
    return lambda p: numbers.ABSENT if p.power is None else numbers.kilowatts(pick(p.power))


def _bought(p: PolicyPlan) -> str:
    if p.placement is None or p.gpu_range is None:
        return "none suffices"
    low, high = numbers.count(p.gpu_range.low_gpus), p.gpu_range.high_gpus
    ends = f"{low}+" if high is None else f"{low}-{numbers.count(high)}"
    return f"{numbers.count(p.placement.gpus)} ({ends})"


def _nodes(p: PolicyPlan) -> str:
    if p.placement is None:
        return numbers.ABSENT
    return f"{numbers.count(p.placement.nodes)} / {numbers.count(p.placement.racks)}"


def _energy_a_day(plan: Plan, p: PolicyPlan) -> str:
    if p.power is None:
        return numbers.ABSENT
    days = len(p.power.it_w) * plan.demand.step_s / 86_400
    return numbers.watt_hours(p.power.facility_energy_j / days)


def _energy_a_token(p: PolicyPlan) -> str:
    if p.power is None:
        return numbers.ABSENT
    return numbers.joules_per_token(p.power.facility_energy_j_per_token)


def _usd_an_hour(p: PolicyPlan) -> str:
    return numbers.ABSENT if p.cost is None else numbers.dollars(p.cost.total_usd_per_hour)


def _usd_a_token(p: PolicyPlan) -> str:
    if p.cost is None:
        return numbers.ABSENT
    return numbers.dollars(p.cost.output_usd_per_million_tokens)


def together(portfolio: Portfolio) -> Report:
    """Sums over plans that share a fleet; racks and nodes are bought plan by plan."""
    chosen = [
        next(p for p in plan.policies if p.policy == plan.verdict.policy)
        for plan in portfolio.plans
    ]
    rows = [
        (plan.forecast, p.policy, *_sums([p]))
        for plan, p in zip(portfolio.plans, chosen, strict=True)
    ]
    return Report(
        title="Together, each by its verdict",
        subtitle=(),
        tables=(
            Table(
                title="",
                columns=("", "policy", "GPUs", "nodes", "racks", "peak IT power"),
                rows=(*rows, ("all", "", *_sums(chosen))),
            ),
        ),
        notes=(),
    )


def _sums(plans: list[PolicyPlan]) -> tuple[str, str, str, str]:
    placed = [p.placement for p in plans if p.placement is not None]
    watts = [p.power.peak_it_w for p in plans if p.power is not None]
    return (
        numbers.count(sum(p.gpus for p in placed)),
        numbers.count(sum(p.nodes for p in placed)),
        numbers.count(sum(p.racks for p in placed)),
        numbers.kilowatts(sum(watts)) if len(watts) == len(plans) else numbers.ABSENT,
    )
