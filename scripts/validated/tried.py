"""All predictions that docs/validation.md shows, by the half of the data that they belong to.

Errors of one half were looked at while the physics was built, those of the other were not.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from capplan.backtester import pairs
from capplan.backtester.acceptance_curves import curve_rows
from capplan.backtester.moe_layers import LayerErrors
from capplan.backtester.serving import predicted_rows
from capplan.cli import backtest_rounds, backtest_served, models
from capplan.cli.backtest_run import SERVED, layers, shipped_curves
from capplan.files.catalogue import names, shipped
from capplan.importers.published import read_points, read_reports
from capplan.importers.published.curves import read_curves
from capplan.importers.published.serving import read_serving
from capplan.records.backtest import Predicted
from capplan.records.served import ServedRow


@dataclass(frozen=True)
class Halves:
    """Predictions of one kind."""

    seen: tuple[Predicted, ...]
    """Whose errors were looked at while building."""
    held: tuple[Predicted, ...]
    """Whose errors were not."""

    @property
    def all(self) -> tuple[Predicted, ...]:
        """Both."""
        return self.seen + self.held


@dataclass(frozen=True)
class Tried:
    """All predictions."""

    served: Halves
    rounds: Halves
    layers: tuple[LayerErrors, ...]
    curves: tuple[Predicted, ...]
    whole: bool
    """Whether served rows were given, not only those that ship."""


def tried(serving: Path | None, points: Path | None, reports: Path | None) -> Tried:
    """Predicts everything.

    Args:
        serving: Served rows; None for those that ship.
        points: Rounds and curves of acceptance.
        reports: Rounds that users reported.

    Raises:
        InputError: As `capplan backtest`.
    """
    rows = read_serving(serving or shipped() / SERVED)
    known = cache(models.architecture)
    served = list(predicted_rows(rows, names("models"), known, backtest_served.steps))
    rounds = pairs.once(
        read_points(points) if points else (), read_reports(reports) if reports else ()
    )
    predicted = pairs.rows(rounds, cache(backtest_rounds.steps))
    curves = (read_curves(points) if points else ()) or shipped_curves()
    return Tried(
        _halves(served, [_key(row) for row in rows]),
        _halves(predicted, [row.source for row in predicted]),
        tuple(layers()),
        tuple(curve_rows(curves)),
        serving is not None,
    )


def _key(row: ServedRow) -> str:
    """Rows of a checkpoint on one GPU under one engine stay together."""
    return f"{row.checkpoint}|{row.gpu.replace('-', '_')}|{row.engine}"


def _halves(rows: list[Predicted] | tuple[Predicted, ...], keys: list[str]) -> Halves:
    odd = [
        int(hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest(), 16) % 2 for key in keys
    ]
    return Halves(
        tuple(row for row, half in zip(rows, odd, strict=True) if not half),
        tuple(row for row, half in zip(rows, odd, strict=True) if half),
    )
