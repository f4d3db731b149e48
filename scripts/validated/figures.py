"""Predicted against measured, as figures of docs/validation.md."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capplan.records.backtest import Predicted
from plotted.figures import INK, STYLE, save
from validated.tried import Halves, Tried

SEEN, HELD = "#1f9e6e", "#d06a00"


def draw(found: Tried, folder: Path) -> list[Path]:
    """Writes the figures and says where."""
    paths = [folder / "served.svg"]
    with mpl.rc_context(STYLE):
        save(_served(found.served), paths[0])
        if found.rounds.all:
            paths.append(folder / "speed_ups.svg")
            save(_speed_ups(found.rounds), paths[1])
    return paths


def _served(halves: Halves) -> Figure:
    figure = Figure(figsize=(8, 4.2), layout="constrained", dpi=160)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, title, sparse in zip(panels, ("dense", "sparse"), (False, True), strict=True):
        for rows, colour, label in _named(halves):
            own = [row for row in rows if row.sparse == sparse and row.predicted is not None]
            axes.plot(
                [1e3 * row.measured for row in own],
                [1e3 * (row.predicted or 0) for row in own],
                ".",
                color=colour,
                markersize=4,
                alpha=0.6,
                # A thousand points as shapes would be a quarter of a megabyte.
                rasterized=True,
                label=label,
            )
        _diagonal(axes, (2, 200))
        axes.set_title(f"{title} models")
        axes.set_xlabel("served (ms a token)")
    panels[0].set_ylabel("predicted (ms a token)")
    panels[0].legend()
    return figure


def _speed_ups(halves: Halves) -> Figure:
    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for rows, colour, label in _named(halves):
        own = [row for row in rows if row.what == "speed_up" and row.predicted is not None]
        middle = [row.predicted or 0 for row in own]
        ends = [
            [one - (row.low or one) for one, row in zip(middle, own, strict=True)],
            [(row.high or one) - one for one, row in zip(middle, own, strict=True)],
        ]
        measured = [row.measured for row in own]
        axes.errorbar(measured, middle, ends, fmt=".", color=colour, linewidth=0.7, label=label)
    _diagonal(axes, (0.4, 5))
    axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xlabel("measured speed-up")
    axes.set_ylabel("predicted, with its range")
    axes.legend()
    return figure


def _named(halves: Halves) -> list[tuple[Sequence[Predicted], str, str]]:
    return [(halves.seen, SEEN, "half built on"), (halves.held, HELD, "half held out")]


def _diagonal(axes: Axes, ends: tuple[float, float]) -> None:
    axes.plot(ends, ends, color=INK, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
