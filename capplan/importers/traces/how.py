"""What the user says about reading."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from capplan.importers.traces.layout import Layout
from capplan.importers.traces.ledger import Ledger


@dataclass(frozen=True)
class How:
    """The choices that hold for all files of one reading."""

    ledger: Ledger
    mapping: Layout | None = None
    """Columns by `--map`, before any format that is recognised."""
    zone: ZoneInfo | None = None
    """Of times that are written without one; None takes them for UTC and says so."""
    cache_tokens: float | None = None
    """What a prefix cache holds, for traces with hashes of their prompts. [tokens]"""
    kind_column: str | None = None
    """Column that tells classes apart, where the format's own is not wanted."""
