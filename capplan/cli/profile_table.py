"""What a profile's steps say about speculation, as tables no wider than the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group
from rich.table import Table

from capplan.records.profile import Profile, StepCell
from capplan.report import numbers

UNSURE: Final = 0.10
"""Part of an efficiency by which its interval may be off before it is marked."""
FRAME: Final = 3
"""Columns that a table's cell takes beside its text: a border and a blank on either side."""
LEGEND: Final = {
    "~": f"uncertain by more than {UNSURE:.0%}, or too few runs to tell: repeat with more --runs",
    "!": "above 1 beyond its interval: verifying cost less than a plain step, so kernels differ "
    "or the machine was disturbed",
}

Places = dict[tuple[int, int, int], StepCell]
"""Cells by context, batch and query tokens."""


@dataclass(frozen=True)
class Column:
    """A column's head and its cells, one a batch."""

    head: str
    cells: tuple[str, ...]

    @property
    def width(self) -> int:
        """Columns of the terminal that it takes."""
        return max(map(len, (self.head, *self.cells))) + FRAME


def tables(profile: Profile, width: int) -> Iterator[Group | str]:
    """Tables of each context: batch down, draft length across; then what marks mean.

    A number is the target efficiency, the time of a plain step over that of the step which
    verifies so many drafts; behind it stand the distinct experts that this step touches. Where
    no step verifies drafts, the tables hold the times of plain steps.

    Args:
        profile: What was measured.
        width: Columns of the terminal; a context's columns spread over as many tables as need be.

    Source:
        MoESD (arXiv 2505.19645), section 3: target efficiency.
    """
    cells = {(c.context_tokens, c.batch, c.query_tokens): c for c in profile.steps.rows}
    batches = Column("batch", tuple(str(batch) for batch in _axis(cells, 1)))
    if _axis(cells, 2) == [1]:
        title = "Times of plain steps by context_tokens; no step verified drafts"
        yield Group(title, *_split(batches, _plain_columns(cells), width))
        return
    sparse = any(cell.distinct_experts is not None for cell in cells.values())
    aside = " / distinct experts" if sparse else ""
    shown = ""
    for context in _axis(cells, 0):
        columns = _columns(context, cells, sparse)
        shown += "".join(text for column in columns for text in column.cells)
        title = f"Target efficiency{aside} by draft_tokens, context_tokens {context}"
        yield Group(title, *_split(batches, columns, width))
    yield from (f"{mark} {meaning}" for mark, meaning in LEGEND.items() if mark in shown)


def fit_line(profile: Profile) -> str | None:
    """What the fit of the steps gets wrong, in one sentence; None without one."""
    if profile.fit is None:
        return None
    fit = profile.fit
    edges = ", ".join(
        f"{axis.removesuffix('_tokens')} {error:.1%}" for axis, error in fit.edge_error.items()
    )
    beyond = f"; the largest of an axis without it: {edges}" if edges else ""
    return (
        f"A fit of the steps misses one it was not shown by {fit.left_out_error:.1%} (median), "
        f"{fit.left_out_error_p90:.1%} (nine in ten){beyond}."
    )


def efficiency(plain: StepCell, cell: StepCell) -> str:
    """Plain step over verification, with the marks that its interval asks for.

    The interval's ends are those of both times at once, which is wide rather than narrow.
    """
    ratio = plain.step_s / cell.step_s
    ends = (plain.low_s, plain.high_s, cell.low_s, cell.high_s)
    if None in ends:
        return f"{ratio:.2f}~"
    plain_low, plain_high, low, high = (end or 0.0 for end in ends)
    least, most = plain_low / high, plain_high / low
    unsure = max(ratio - least, most - ratio) > UNSURE * ratio
    return f"{ratio:.2f}{'~' if unsure else ''}{'!' if least > 1 else ''}"


def _axis(cells: Places, axis: int) -> list[int]:
    return sorted({place[axis] for place in cells})


def _columns(context: int, cells: Places, sparse: bool) -> list[Column]:
    queries = _axis(cells, 2)
    return [
        Column(
            str(query - 1),
            tuple(
                _shown(cells.get((context, batch, 1)), cells.get((context, batch, query)))
                for batch in _axis(cells, 1)
            ),
        )
        for query in (queries if sparse else queries[1:])
    ]


def _plain_columns(cells: Places) -> list[Column]:
    columns = []
    for context in _axis(cells, 0):
        found = [cells.get((context, batch, 1)) for batch in _axis(cells, 1)]
        times = tuple("-" if cell is None else numbers.time(cell.step_s) for cell in found)
        columns.append(Column(str(context), times))
    return columns


def _shown(plain: StepCell | None, cell: StepCell | None) -> str:
    if plain is None or cell is None:
        return "-"
    ratio = "1.00" if cell is plain else efficiency(plain, cell)
    return ratio if cell.distinct_experts is None else f"{ratio}/{cell.distinct_experts:.0f}"


def _split(first: Column, columns: Sequence[Column], width: int) -> Iterator[Table]:
    """Tables that repeat the first column, each as wide as fits."""
    rest = list(columns)
    while rest:
        taken = [first, rest.pop(0)]
        while rest and 1 + sum(column.width for column in (*taken, rest[0])) <= width:
            taken.append(rest.pop(0))
        table = Table()
        for column in taken:
            table.add_column(column.head, justify="right", overflow="fold")
        for row in zip(*(column.cells for column in taken), strict=True):
            table.add_row(*row)
        yield table
