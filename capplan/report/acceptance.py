"""A measured acceptance as a table: what each draft length would have brought."""

from collections.abc import Iterator

import numpy as np

from capplan.physics.acceptance import tokens_per_round
from capplan.physics.acceptance_extension import FEWEST_KNOWN, extended_shares
from capplan.records.acceptance import Acceptance, DrafterKind, MeasuredAcceptance
from capplan.report.layout import Note, Report, Table

FEW = 20
"""Requests below which a bootstrap's interval is clearly too narrow."""
FURTHER = 2
"""Drafts beyond those measured that are spoken of."""


def report(found: MeasuredAcceptance) -> Report:
    """Shares by position and tokens per round by draft length, workload by workload."""
    tables, notes = [], []
    for workload, table in found.acceptance.items():
        tables.append(_table(workload, table))
        lines = (*_lines(table), *_longer(found.kind, table))
        notes.append(Note(f"{workload}: how it was counted", lines))
    return Report(
        title=f"Acceptance of {found.drafter}: {found.description}",
        subtitle=(f"kind {found.kind}",),
        tables=tuple(tables),
        notes=tuple(notes),
    )


def _table(workload: str, table: Acceptance) -> Table:
    assert table.accepted is not None
    assert table.rounds is not None
    shares = np.array(table.accepted) / table.rounds
    low, high = (np.array(side or shares) for side in (table.low_share, table.high_share))
    before = np.concatenate([[1.0], shares[:-1]])
    rows = [
        (
            str(place + 1),
            f"{table.accepted[place]:,}",
            f"{shares[place]:.3f}",
            f"{low[place]:.3f}-{high[place]:.3f}",
            f"{shares[place] / before[place]:.3f}" if before[place] else "-",
            f"{tokens_per_round(shares)[place + 1]:.2f}",
            f"{tokens_per_round(low)[place + 1]:.2f}-{tokens_per_round(high)[place + 1]:.2f}",
        )
        for place in range(len(shares))
    ]
    columns = ("draft", "kept", "of rounds", "95 %", "if before", "tokens/round", "95 %")
    return Table(f"{workload}, {table.rounds:,} rounds", columns, tuple(rows))


def _longer(kind: DrafterKind, table: Acceptance) -> Iterator[str]:
    """What longer drafts may bring, of drafters whose drafts do not depend on their number."""
    assert table.accepted is not None
    assert table.rounds is not None
    known = len(table.accepted)
    if kind != "autoregressive" or known < FEWEST_KNOWN:
        return
    longer = extended_shares(np.array(table.accepted) / table.rounds, known + FURTHER)
    tokens = tokens_per_round(longer.shares)
    said = ", ".join(
        f"{drafts} drafts {tokens[drafts]:.2f} within {longer.error[drafts]:.0%}"
        for drafts in range(known + 1, known + FURTHER + 1)
    )
    yield f"Not measured, carried on from the drift of what was: {said}."


def _lines(table: Acceptance) -> tuple[str, ...]:
    assert table.requests is not None
    assert table.drafted_rounds is not None
    assert table.rounds is not None
    requests = table.requests.rows
    each = sorted(1 + sum(row.accepted) / row.rounds for row in requests)
    tokens = f"{each[0]:.2f} to {each[-1]:.2f}, median {float(np.median(each)):.2f}"
    spread = f"{table.per_request_sd:.3f}, counting noise taken out"
    lines = [
        f"{len(requests)} requests; tokens a round {tokens}.",
        f"Spread between requests (per_request_sd) {spread}.",
    ]
    if table.drafted_rounds < table.rounds:
        share = table.drafted_rounds / table.rounds
        lines.append(f"{share:.0%} of the rounds had a draft; shares are of all rounds.")
    if len(requests) < FEW:
        lines.append(f"Fewer than {FEW} requests: the intervals are too narrow.")
    if table.origin.note:
        lines.append(table.origin.note)
    return tuple(lines)
