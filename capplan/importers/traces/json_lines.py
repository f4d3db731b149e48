"""Blocks of rows of a file with one JSON object a line."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from capplan.errors import Complaint
from capplan.importers.traces.comma import ROWS, Block
from capplan.importers.traces.ledger import Ledger
from capplan.importers.traces.text import lines, opened


def names(row: dict[str, Any], above: str = "") -> set[str]:
    """Dotted names of everything in an object, at every depth."""
    found: set[str] = set()
    for key, value in row.items():
        found.add(above + key)
        if isinstance(value, dict):
            found |= names(value, f"{above}{key}.")
    return found


def blocks(path: Path, wanted: Sequence[str], ledger: Ledger) -> Iterator[Block]:
    """Objects, some thousand at a time; an absent value is None.

    Raises:
        InputError: As `ledger` says of lines that hold no object.
    """
    roads = {name: name.split(".") for name in wanted}
    with opened(path) as text:
        numbered = enumerate(lines(path, text, ledger), 1)
        while taken := list(islice(numbered, ROWS)):
            rows = [row for line in taken if (row := _row(path, *line, ledger)) is not None]
            if rows:
                yield (
                    [number for number, _ in rows],
                    {name: _column(rows, road) for name, road in roads.items()},
                )


def _row(path: Path, number: int, line: str, ledger: Ledger) -> tuple[int, Any] | None:
    if not line.strip():
        return None
    try:
        row = json.loads(line)
    except ValueError as error:
        column = min(getattr(error, "pos", 0), len(line.rstrip())) + 1
        ledger.add(Complaint(f"{path}:{number}:{column}", "", "is not JSON"))
        return None
    if not isinstance(row, dict):
        ledger.add(Complaint(f"{path}:{number}", "", "must be a JSON object", type(row).__name__))
        return None
    return number, row


def _column(rows: list[tuple[int, Any]], road: list[str]) -> list[Any]:
    if len(road) == 1:
        key = road[0]
        return [row.get(key) for _, row in rows]
    return [_at(row, road) for _, row in rows]


def _at(value: Any, road: list[str]) -> Any:
    for key in road:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
