"""A column of numbers from a CSV file.

In complaints the third part of `file:line:column` counts the table's columns, from 1.
"""

import csv
import difflib
import io
import re
from pathlib import Path

from capplan.errors import Complaint, InputError
from capplan.files.findings import shown
from capplan.files.text import read_text
from capplan.records.forecast import Series
from capplan.units import LARGEST_PER_S

LARGEST_BYTES = 64 << 20
_MOST_COMPLAINTS = 20
_NUMBER = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_SHOWN_COLUMNS = 15
_SHOWN_CELL = 20
"""Longer cells are shown quoted and cut."""

Line = tuple[int, list[str]]
"""Number of the line a row ends in, and its cells."""


def read_series(folder: Path, series: Series) -> tuple[float, ...]:
    """Requests a second from one column, each a finite number of at least 0.

    Args:
        folder: What the series' file is relative to.
        series: The file and the column.

    Returns:
        A value a row, in file order. [1/s]

    Raises:
        InputError: No such file or column, or bad rows: up to 20 of them, then their count.
    """
    path = folder / series.file
    header, lines = _table(path, read_text(path, LARGEST_BYTES))
    index = _column(path, header, series.column)
    bad = [
        complaint
        for line in lines
        if (complaint := _complaint(path, header, index, line)) is not None
    ]
    if len(bad) > _MOST_COMPLAINTS:
        more = f"{len(bad) - _MOST_COMPLAINTS} more rows are wrong"
        bad = [*bad[:_MOST_COMPLAINTS], Complaint(place=str(path), key="", rule=more)]
    if bad:
        raise InputError(bad)
    return tuple(float(cells[index]) for _, cells in lines)


def _table(path: Path, text: str) -> tuple[list[str], list[Line]]:
    """Header and rows; blank lines at the end do not count."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        place = f"{path}:{reader.line_num}"
        raise InputError([Complaint(place=place, key="", rule=f"is not CSV: {error}")]) from error
    while lines and not any(cell.strip() for cell in lines[-1][1]):
        lines.pop()
    if len(lines) < 2:
        rule = "has a header but no rows" if lines else "is empty"
        raise InputError([Complaint(place=str(path), key="", rule=rule)])
    return [name.strip() for name in lines[0][1]], lines[1:]


def _column(path: Path, header: list[str], name: str) -> int:
    """Index of the column of that name."""
    if header.count(name) == 1:
        return header.index(name)
    near = difflib.get_close_matches(name, header, n=1)
    listed = ", ".join(header[:_SHOWN_COLUMNS]) + (", …" if len(header) > _SHOWN_COLUMNS else "")
    remedy = f"did you mean {near[0]}?" if near else f"its columns: {listed}"
    complaint = (
        Complaint(place=f"{path}:1", key=name, rule="column stands more than once")
        if name in header
        else Complaint(place=f"{path}:1", key=name, rule="no such column", remedy=remedy)
    )
    raise InputError([complaint])


def _complaint(path: Path, header: list[str], index: int, line: Line) -> Complaint | None:
    number, cells = line
    if len(cells) != len(header):
        rule = f"must have {len(header)} cells, as the header"
        return Complaint(place=f"{path}:{number}", key="", rule=rule, found=str(len(cells)))
    cell = cells[index].strip()
    number_like = _NUMBER.fullmatch(cell) is not None
    if number_like and float(cell) <= LARGEST_PER_S:
        return None
    return Complaint(
        place=f"{path}:{number}:{index + 1}",
        key=header[index],
        rule=f"must be at most {LARGEST_PER_S:g}"
        if number_like
        else "must be a number of at least 0",
        found=cell if cell.isprintable() and 0 < len(cell) <= _SHOWN_CELL else shown(cell),
    )
