"""Plan to report: titles, rows and notes as text, with no markup."""

from collections.abc import Callable
from dataclasses import dataclass

from capplan.records.plan import (
    DraftRange,
    OperatingPoint,
    OriginLine,
    Plan,
    PolicyPlan,
    PoolPlan,
    Portfolio,
    Service,
)
from capplan.report import numbers


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column labels the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Note:
    """A heading with lines under it."""

    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """What every output format shows."""

    title: str
    subtitle: tuple[str, ...]
    tables: tuple[Table, ...]
    notes: tuple[Note, ...]


DEFINITIONS = (
    "TPOT: time per output token after the first, per request. TTFT: arrival to first token. "
    "chunk gap: between two streamed chunks, one round under speculation. "
    "Tokens per round count the bonus token; a round verifies draft length + 1 tokens."
)

Cell = Callable[[PolicyPlan], str]


def report(plan: Plan) -> Report:
    """Everything a reader of one plan is told."""
    return Report(
        title=f"{plan.forecast}: {plan.model} on {plan.fleet}",
        subtitle=_subtitle(plan),
        tables=(*_at_peak(plan), _fleet(plan), _latencies(plan), _sensitivity(plan)),
        notes=(
            _binding(plan),
            _draft_lengths(plan),
            Note("Verdict", _verdict(plan)),
            Note("Where the numbers come from", _origins(plan)),
            Note("Defaults used", _defaults(plan)),
            Note("Caveats", tuple(f"{c.about}: {c.text}" for c in plan.caveats)),
            Note("Definitions", (DEFINITIONS, *_whose(plan))),
        ),
    )


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


_BALANCED = (
    "Rates and percentiles are simulated; batch, tokens per round, efficiencies and mean TPOT are "
    "the balance's at the same rate, and watts follow from them."
)


def _whose(plan: Plan) -> tuple[str, ...]:
    """Which figures of a simulated plan the simulation did not make."""
    return () if plan.seed is None else (_BALANCED,)


def _subtitle(plan: Plan) -> tuple[str, ...]:
    demand = plan.demand
    totals = [sum(rates) for rates in zip(*(c.rate_per_s for c in demand.classes), strict=True)]
    mean = sum(totals) / len(totals)
    tokens = [
        sum(rate * c.mean_output_tokens for rate, c in zip(rates, demand.classes, strict=True))
        for rates in zip(*(c.rate_per_s for c in demand.classes), strict=True)
    ]
    hours = len(totals) * demand.step_s / 3600
    grade = "" if plan.purchase_grade else f"NOT PURCHASE-GRADE: {plan.grade}."
    span = f"{hours:g} h from {demand.start:%Y-%m-%d %H:%M %Z}"
    minute = f"busiest minute x{demand.peak_minute_over_mean:g}"
    requests = f"requests: mean {numbers.rate(mean)}, peak interval {numbers.rate(max(totals))}"
    output = sum(tokens) / len(tokens)
    return (
        f"{span}; {requests}, {minute}",
        f"output tokens: mean {numbers.rate(output)}, peak interval {numbers.rate(max(tokens))}",
        grade,
    )


def _at_peak(plan: Plan) -> list[Table]:
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


def _fleet(plan: Plan) -> Table:
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


def _peak(show: Callable[[OperatingPoint], str]) -> Callable[[PoolPlan], str]:
    return lambda pool: show(pool.at_peak)


def _power(pick: Callable[..., float]) -> Cell:
    return lambda p: numbers.ABSENT if p.power is None else numbers.kilowatts(pick(p.power))


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


def _latencies(plan: Plan) -> Table:
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


def _binding(plan: Plan) -> Note:
    lines = []
    for p in plan.policies:
        if not p.pools:
            lines.append(f"{p.policy}: {p.infeasible}")
        for pool in p.pools:
            service, limits = pool.service, pool.service.batch_limits
            lines.append(
                f"{_label(p, pool)}: {service.binding.text} (batch "
                f"{service.at_capacity.batch:.0f}; memory fits {limits.memory:.0f}, engine "
                f"{limits.engine}, measured to {limits.measured}) [{service.profile}]"
            )
        if p.gpu_range is not None and p.gpu_range.high_gpus is None:
            lines.append(
                f"{p.policy}: at the bad end of the stated bands no fleet keeps the objectives"
            )
    return Note("What binds a replica", tuple(lines))


def _label(p: PolicyPlan, pool: PoolPlan) -> str:
    """The policy, and which classes where it has several pools."""
    return p.policy if len(p.pools) == 1 else f"{p.policy} {'+'.join(pool.classes)}"


def _sensitivity(plan: Plan) -> Table:
    rows = [
        (_label(p, pool), *(_elasticity(pool.service, of) for of, _ in _ELASTICITIES))
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


def _draft_lengths(plan: Plan) -> Note:
    lines = [
        f"{_label(p, pool)} ({pool.service.drafter}): {_ranges(pool.service.draft_ranges)}"
        f"{_undrafted(pool.service.undrafted_classes)}; in vLLM "
        f"num_speculative_tokens_per_batch_size: {_vllm(pool.service.draft_ranges)}"
        if pool.service.drafter is not None
        else f"{_label(p, pool)}: no drafter"
        for p in plan.policies
        for pool in p.pools
        if p.policy != "plain"
    ]
    return Note("Draft length by running batch", tuple(lines))


def _ranges(ranges: tuple[DraftRange, ...]) -> str:
    return ", ".join(f"{r.from_batch}-{r.to_batch}: {r.draft_tokens}" for r in ranges)


def _undrafted(classes: tuple[str, ...]) -> str:
    return f"; {', '.join(classes)} undrafted" if classes else ""


def _vllm(ranges: tuple[DraftRange, ...]) -> str:
    rows = (f"[{r.from_batch},{r.to_batch},{r.draft_tokens}]" for r in ranges)
    return f"[{','.join(rows)}]"


def _verdict(plan: Plan) -> tuple[str, ...]:
    verdict = plan.verdict
    lines = (verdict.sentence, f"Why: {verdict.reason}.")
    return lines if verdict.flips is None else (*lines, f"Flips: {verdict.flips}.")


def _origins(plan: Plan) -> tuple[str, ...]:
    return tuple(_origin(line) for line in plan.origins)


def _origin(line: OriginLine) -> str:
    """The kind, the first sentence of how, and the source or how many there are."""
    parts = [line.text.split(". ")[0].rstrip(".")] if line.text else []
    if len(line.sources) == 1:
        parts.append(line.sources[0])
    elif line.sources:
        parts.append(f"{len(line.sources)} sources, listed in the profile")
    return f"{line.quantity}: {': '.join([line.kind.upper(), '; '.join(parts)])}"


def _defaults(plan: Plan) -> tuple[str, ...]:
    if not plan.defaults:
        return ("none",)
    return tuple(f"{d.file}: {d.key} = {d.value}" for d in plan.defaults)
