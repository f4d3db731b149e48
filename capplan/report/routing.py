"""Measured routing as tables: overlap by distance, distinct experts beside the formula."""

from capplan.physics.overlap import predicted
from capplan.records.routing import DistinctCell, LayerGroup, Routing, WorkloadRouting
from capplan.report.layout import Note, Report, Table

LAGS = (1, 2, 4, 8, 16)
WORDS = (
    "overlap: part of a token's experts that another token chose too; across: of another text.",
    "median / top: tokens that choose an expert, over the mean of all experts.",
    "cosine: 1 where two workloads share experts as texts of one workload do.",
)


def report(found: Routing) -> Report:
    """Workload by workload, then how alike workloads are."""
    tables = []
    for name, workload in found.workloads.items():
        tables += [_overlap(name, workload), _distinct(found, name, workload)]
    if found.likeness is not None:
        rows = tuple(
            (f"{row.workload}, {row.other}", f"{row.overlap:.3f}", f"{row.cosine:.2f}")
            for row in found.likeness.rows
        )
        tables.append(Table("Experts in common", ("workloads", "overlap", "cosine"), rows))
    independent = found.experts_per_token / found.experts
    return Report(
        title=f"Routing: {found.experts_per_token} of {found.experts} experts a token",
        subtitle=(f"Overlap of tokens that choose alone: {independent:.3f}",),
        tables=tuple(tables),
        notes=(Note("How it was measured", (found.origin.note or "",)), Note("Words", WORDS)),
    )


def _overlap(name: str, workload: WorkloadRouting) -> Table:
    rows = tuple(
        (
            f"{group} ({part.layers})",
            f"{part.across:.3f}",
            *(f"{part.overlap[lag - 1]:.3f}" for lag in LAGS),
            f"{part.popularity[5]:.2f} / {part.popularity[10]:.1f}",
        )
        for group, part in workload.layer_groups.items()
    )
    lags = tuple(f"lag {lag}" for lag in LAGS)
    title = f"{name}: overlap, {workload.sequences} texts, {workload.positions:,} tokens"
    return Table(title, ("layers", "across", *lags, "median / top"), rows)


def _distinct(found: Routing, name: str, workload: WorkloadRouting) -> Table:
    groups = workload.layer_groups
    steps = [
        (row.batch, row.query_tokens)
        for row in next(iter(groups.values())).distinct.rows
        if row.batch > 1 or row.query_tokens in (2, 4, 8, 16)
    ]
    rows = tuple(
        (f"{batch} x {query}", *(_beside(found, part, batch, query) for part in groups.values()))
        for batch, query in steps
    )
    title = f"{name}: distinct experts, counted / by formula"
    return Table(title, ("batch x query_tokens", *groups), rows)


def _beside(found: Routing, part: LayerGroup, batch: int, query_tokens: int) -> str:
    cell = next(row for row in part.distinct.rows if _at(row) == (batch, query_tokens))
    experts = (found.experts, found.experts_per_token)
    formula = predicted(experts, part.across, part.overlap, (batch, query_tokens))
    return f"{cell.distinct_experts:.1f} / {formula:.1f}"


def _at(row: DistinctCell) -> tuple[int, int]:
    return row.batch, row.query_tokens
