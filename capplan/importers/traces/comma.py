"""Blocks of rows of a CSV file."""

import csv
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from capplan.errors import Complaint, InputError
from capplan.importers.traces.ledger import Ledger
from capplan.importers.traces.text import lines, opened

ROWS = 4096
"""Of a block: few enough to stay in the processor's cache."""

Block = tuple[list[int], dict[str, Sequence[Any]]]
"""Line of each row, and the columns asked for."""

_WIDEST = 1 << 24
"""Bytes of a cell: logs hold whole prompts, which are stepped over."""


def header(path: Path) -> list[str]:
    """Names of the columns, from the first line.

    Raises:
        InputError: There is none, or two are alike.
    """
    with opened(path) as text:
        names = next(csv.reader(lines(path, text, Ledger(1))), [])
    names = [name.strip() for name in names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        rule = f"column {twice[0]} stands twice" if twice else "is empty"
        raise InputError([Complaint(f"{path}:1", "", rule)])
    return names


def blocks(path: Path, wanted: Sequence[str], ledger: Ledger) -> Iterator[Block]:
    """Rows below the header, some thousand at a time; blank lines do not count.

    Raises:
        InputError: As `ledger` says of rows with too few or too many cells.
    """
    names = header(path)
    places = [names.index(name) for name in wanted]
    csv.field_size_limit(_WIDEST)
    with opened(path) as text:
        reader = csv.reader(lines(path, text, ledger))
        next(reader, None)
        while (taken := _rows(path, reader, ledger))[1]:
            numbers, cells = _even(path, *taken, len(names), ledger)
            if cells:
                columns = list(zip(*cells, strict=True))
                yield numbers, {name: columns[at] for name, at in zip(wanted, places, strict=True)}


def _rows(path: Path, reader: Any, ledger: Ledger) -> tuple[list[int], list[list[str]]]:
    """The next rows, and the line each begins in; a row that is no CSV ends the file."""
    rows: list[list[str]] = []
    line = reader.line_num + 1
    try:
        rows.extend(islice(reader, ROWS))
    except csv.Error as error:
        ledger.add(Complaint(f"{path}:{reader.line_num}", "", f"is not CSV: {error}"))
    if reader.line_num - line + 1 == len(rows):
        return list(range(line, line + len(rows))), rows
    tall = [1 + sum(cell.count("\n") for cell in row) for row in rows]
    return [line + above for above in accumulate(tall[:-1], initial=0)], rows


def _even(
    path: Path, numbers: list[int], rows: list[list[str]], width: int, ledger: Ledger
) -> tuple[list[int], list[list[str]]]:
    """Rows as wide as the header, and their lines."""
    if set(map(len, rows)) == {width}:
        return numbers, rows
    good: list[int] = []
    for place, (number, row) in enumerate(zip(numbers, rows, strict=True)):
        if len(row) == width:
            good.append(place)
        elif row:
            rule = f"must have {width} cells, as the header"
            ledger.add(Complaint(f"{path}:{number}", "", rule, str(len(row))))
    return [numbers[place] for place in good], [rows[place] for place in good]
