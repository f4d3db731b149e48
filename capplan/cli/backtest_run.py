"""What a backtest reads, and where each prediction comes from."""

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from capplan import __version__
from capplan.backtester import pairs
from capplan.backtester.acceptance_curves import curve_rows
from capplan.backtester.figures import backtest
from capplan.backtester.moe_layers import LayerErrors, layer_errors
from capplan.backtester.serving import predicted_rows
from capplan.cli import backtest_rounds, backtest_served, models
from capplan.errors import Complaint, InputError
from capplan.files.catalogue import find, names, shipped
from capplan.files.reader import read
from capplan.importers.published import read_points, read_reports
from capplan.importers.published.curves import read_curves
from capplan.importers.published.serving import read_serving
from capplan.importers.silicon import silicon
from capplan.importers.silicon.package import systems
from capplan.records.backtest import Backtest, Predicted
from capplan.records.known_drafter import KnownDrafter
from capplan.records.published_curve import PublishedCurve

Row = TypeVar("Row")
SERVED: Final = "published/served_rows.csv"
"""The served rows that ship: one in eight of those in NVIDIA's aiconfigurator, Apache-2.0."""
LAYERS_ON: Final = ("h100-sxm", "h200-sxm", "b200-sxm")
LAYERS_OF: Final = ("vllm", "sglang", "trtllm")


def run(serving: Path | None, points: Path | None, reports: Path | None) -> Backtest:
    """Reads all files, then predicts.

    Args:
        serving: Served rows; None for those that ship.
        points: Rounds and curves of acceptance; None for the curves that ship.
        reports: Rounds that users reported.

    Raises:
        InputError: The tables are not installed, or files are wrong; all complaints at once.
    """
    systems()
    complaints: list[Complaint] = []
    rows = _read(read_serving, serving or shipped() / SERVED, complaints)
    rounds = pairs.once(
        _read(read_points, points, complaints), _read(read_reports, reports, complaints)
    )
    curves = _read(read_curves, points, complaints) or shipped_curves()
    if complaints:
        raise InputError(complaints)
    found: list[Predicted] = []
    _say(f"{len(rows)} served rows")
    found += predicted_rows(
        rows, names("models"), cache(models.architecture), backtest_served.steps
    )
    if rounds:
        _say(f"{len(rounds)} published rounds")
        found += pairs.rows(rounds, cache(backtest_rounds.steps))
    found += curve_rows(curves)
    _say("layers of experts")
    return backtest(__version__, found, layers())


def layers() -> list[LayerErrors]:
    """Errors of all layers of experts in the tables that capplan composes most from."""
    return [
        one
        for gpu in LAYERS_ON
        for engine in LAYERS_OF
        for one in layer_errors(silicon(gpu, engine))
    ]


def _read(
    reader: Callable[[Path], tuple[Row, ...]], path: Path | None, complaints: list[Complaint]
) -> tuple[Row, ...]:
    """What a file holds; what is wrong with it joins the complaints."""
    if path is None:
        return ()
    try:
        return reader(path)
    except InputError as error:
        complaints.extend(error.complaints)
        return ()


def shipped_curves() -> tuple[PublishedCurve, ...]:
    """Curves of the known drafters."""
    known = [read(find("drafters", name), KnownDrafter) for name in names("drafters")]
    return tuple(_curves(known))


def _curves(known: list[KnownDrafter]) -> Iterator[PublishedCurve]:
    for drafter in known:
        for curve in drafter.curves:
            thinking = {True: ", thinking", False: ", not thinking", None: ""}[curve.thinking]
            yield PublishedCurve(
                name=f"{drafter.name}, {curve.workload}{thinking}",
                drafter=drafter.name,
                gpu=curve.conditions,
                engine=curve.conditions,
                tokens_per_round=curve.tokens_per_round,
                at_once=False,
            )


def _say(what: str) -> None:
    """Progress, where somebody watches."""
    if sys.stderr.isatty():
        sys.stderr.write(f"predicting {what}\n")
