"""What a profile's steps say about speculation, as a table."""

from collections.abc import Iterator

from rich.console import Group
from rich.table import Table

from capplan.records.profile import Profile, StepCell


def tables(profile: Profile) -> Iterator[Group]:
    """One table a context: batch down, draft length across.

    A number is the target efficiency, the time of a plain step over that of the step which
    verifies so many drafts; behind it stand the distinct experts that this step touches.

    Source:
        MoESD (arXiv 2505.19645), section 3: target efficiency.
    """
    cells = {(c.context_tokens, c.batch, c.query_tokens): c for c in profile.steps.rows}
    sparse = any(cell.distinct_experts is not None for cell in cells.values())
    aside = " / distinct experts" if sparse else ""
    for context in sorted({context for context, _, _ in cells}):
        title = f"Target efficiency{aside} by draft_tokens, context_tokens {context}"
        yield Group(title, _table(context, cells, sparse))


def _table(context: int, cells: dict[tuple[int, int, int], StepCell], sparse: bool) -> Table:
    here = [place for place in cells if place[0] == context]
    queries = sorted({query for _, _, query in here} - {1})
    table = Table()
    table.add_column("batch", justify="right")
    if sparse:
        table.add_column("0", justify="right")
    for query in queries:
        table.add_column(str(query - 1), justify="right")
    for batch in sorted({batch for _, batch, _ in here}):
        row = [cells.get((context, batch, query)) for query in (1, *queries)]
        shown = [_shown(row[0], cell) for cell in (row if sparse else row[1:])]
        table.add_row(str(batch), *shown)
    return table


def _shown(plain: StepCell | None, cell: StepCell | None) -> str:
    if plain is None or cell is None:
        return "-"
    efficiency = f"{plain.step_s / cell.step_s:.2f}"
    if cell.distinct_experts is None:
        return efficiency
    return f"{efficiency}/{cell.distinct_experts:.0f}"
