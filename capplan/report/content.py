"""Plan to report: what a reader of one plan is told, in order."""

from capplan.records.plan import OriginLine, Plan
from capplan.records.service import DraftRange
from capplan.report import numbers
from capplan.report.fleet_table import fleet_table
from capplan.report.layout import DEFINITIONS, Note, Report
from capplan.report.replica_tables import at_peak, label, latencies, sensitivity


def report(plan: Plan) -> Report:
    """Everything a reader of one plan is told."""
    return Report(
        title=f"{plan.forecast}: {plan.model} on {plan.fleet}",
        subtitle=_subtitle(plan),
        tables=(*at_peak(plan), fleet_table(plan), latencies(plan), sensitivity(plan)),
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


_BALANCED = (
    "Rates, batch, TPOT and TTFT are simulated; efficiencies and speed-up are the profile's at "
    "that batch, and watts follow from the balance."
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


def _binding(plan: Plan) -> Note:
    lines = []
    for p in plan.policies:
        if not p.pools:
            lines.append(f"{p.policy}: {p.infeasible}")
        for pool in p.pools:
            service, limits = pool.service, pool.service.batch_limits
            lines.append(
                f"{label(p, pool)}: {service.binding.text} (batch "
                f"{service.at_capacity.batch:.0f}; memory fits {limits.memory:.0f}, engine "
                f"{limits.engine}, measured to {limits.measured}) [{service.profile}]"
            )
        if p.gpu_range is not None and p.gpu_range.high_gpus is None:
            lines.append(
                f"{p.policy}: at the bad end of the stated bands no fleet keeps the objectives"
            )
    return Note("What binds a replica", tuple(lines))


def _draft_lengths(plan: Plan) -> Note:
    lines = [
        f"{label(p, pool)} ({pool.service.drafter}): {_ranges(pool.service.draft_ranges)}"
        f"{_undrafted(pool.service.undrafted_classes)}; in vLLM "
        f"num_speculative_tokens_per_batch_size: {_vllm(pool.service.draft_ranges)}"
        if pool.service.drafter is not None
        else f"{label(p, pool)}: no drafter"
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
