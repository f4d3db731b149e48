"""What every output format shows: titles, rows and notes as text, with no markup."""

from dataclasses import dataclass


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
