"""Reports of `user_reports.yaml`: what practitioners saw, several points under one heading."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from capplan.errors import Complaint, InputError
from capplan.importers.published import words
from capplan.importers.published.fields import Fields, rows
from capplan.importers.published.source import source_file
from capplan.records.published import PublishedRound

BATCH: Final = ("bs", "conc")
DRAFTS: Final = ("gamma", "k")
SPEED_UP: Final = ("speedup", "vs_vanilla")
PLAIN: Final = ("baseline_curve_tok_s", "base_tok_s")
"""Tokens/s of a whole batch without speculation, by batch."""
TREE: Final = re.compile(r"(\d+)/(\d+)")


def read_reports(path: Path) -> tuple[PublishedRound, ...]:
    """Rounds of a file of reports that tell a speed-up.

    A point's `tree: 3/8` is top-k over draft tokens, its `AL` counts the bonus token.

    Args:
        path: The file.

    Raises:
        InputError: The file is no YAML, or has rows that are not as the format says; all by line.
    """
    source = source_file(path)
    found, complaints = rows(source.tree, "reports", source.place)
    points = [point for row in found for point in _points(row)]
    complaints += [
        Complaint(row.here, "id", "must be given") for row in found if not row.tree.get("id")
    ]
    if complaints:
        raise InputError(complaints)
    return tuple(point for point in points if point.tells)


def _points(report: Fields) -> Iterator[PublishedRound]:
    """Its points, or the one that it is itself."""
    inner = report.rows("points") if "points" in report.tree else [report]
    for index, point in enumerate(inner):
        yield _point(report, point, index)


def _point(report: Fields, point: Fields, index: int) -> PublishedRound:
    model, hardware, method = report.text("model"), report.text("hw"), report.text("method")
    gpu, gpus = words.gpu(hardware)
    tree = TREE.fullmatch(point.text("tree") or "")
    drafts = _first(point, DRAFTS)
    gpus = int(_first(point, ("tp",)) or _first(report, ("tp",)) or gpus)
    batch = _first(point, BATCH) or _first(report, BATCH)
    rates = (point.number("base"), *(report.part(key).number(str(batch)) for key in PLAIN))
    plain = next((rate for rate in rates if rate), None)
    verified = int(tree[2]) if tree else drafts and drafts + 1
    return PublishedRound(
        name=f"{report.tree.get('id')}.{index + 1}",
        place=point.here,
        source=report.text("link"),
        model=model,
        sparse=words.sparse(model),
        gpu=gpu,
        gpus=gpus,
        engine=words.engine(report.text("engine")),
        weights=words.weights(model, hardware, method),
        batches=() if batch is None else (batch,),
        passes=drafts,
        beams=int(tree[1]) if tree else 1,
        query_tokens=verified,
        tokens_per_round=point.number("AL"),
        drafter=words.drafter(method),
        context_tokens=None,
        plain_s=batch / plain if batch and plain else None,
        speed_up=next((one for key in SPEED_UP if (one := point.number(key)) is not None), None),
        cycle_ratio=None,
    )


def _first(row: Fields, keys: tuple[str, ...]) -> int | None:
    return next((one for key in keys if (one := row.count(key)) is not None), None)
