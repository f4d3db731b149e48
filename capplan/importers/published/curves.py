"""Curves of acceptance in a file of points: `series` of the kind `acceptance_vs_gamma`."""

from itertools import pairwise
from pathlib import Path
from typing import Final

from capplan.errors import Complaint, InputError
from capplan.importers.published.fields import Fields, rows
from capplan.importers.published.source import source_file
from capplan.records.published_curve import PublishedCurve

KIND: Final = "acceptance_vs_gamma"
AT_ONCE: Final = ("dspark", "dflash", "medusa", "parallel")
"""Drafters that propose all drafts in one go, by what their names hold."""


def read_curves(path: Path) -> tuple[PublishedCurve, ...]:
    """Curves that begin at one draft; a file without series has none.

    Args:
        path: The file.

    Raises:
        InputError: It is no YAML, or has curves that are not as the format says; all by line.
    """
    source = source_file(path)
    if not isinstance(source.tree, dict) or "series" not in source.tree:
        return ()
    found, complaints = rows(source.tree, "series", source.place)
    curves = [_curve(row) for row in found if row.tree.get("kind") == KIND]
    if complaints:
        raise InputError(complaints)
    return tuple(curve for curve in curves if curve is not None)


def _curve(row: Fields) -> PublishedCurve | None:
    name, drafter = row.text("id") or row.here, row.text("model") or "unnamed"
    columns, cells = row.tree.get("columns"), row.tree.get("rows") or []
    if columns != ["gamma", "mean_accepted_len"] or not _numbers(cells):
        rule = "must have columns gamma and mean_accepted_len, and rows of two numbers"
        row.complaints.append(Complaint(row.here, "rows", rule))
        return None
    by_length = dict(sorted((int(length), float(tokens)) for length, tokens in cells))
    lengths = list(by_length)
    if not lengths or lengths[0] != 1 or any(b != a + 1 for a, b in pairwise(lengths)):
        return None
    return PublishedCurve(
        name=name,
        drafter=drafter,
        gpu=row.text("hardware") or "unnamed",
        engine=(row.text("engine") or "unnamed").lower(),
        tokens_per_round=tuple(by_length.values()),
        at_once=any(word in drafter.lower() for word in AT_ONCE),
    )


def _numbers(cells: object) -> bool:
    return isinstance(cells, list) and all(
        isinstance(cell, list)
        and len(cell) == 2
        and all(isinstance(one, int | float) and not isinstance(one, bool) for one in cell)
        and min(cell) >= 1
        for cell in cells
    )
