"""The ten speed-up curves as one light figure."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from plotted.figures import INK, STYLE, save
from validated.curves import SpeedUpCurve

COLUMNS = 5


def draw(found: list[SpeedUpCurve], folder: Path) -> Path:
    """Writes the figure and says where."""
    path = folder / "curves.svg"
    with mpl.rc_context(STYLE):
        save(_figure(found), path)
    return path


def _figure(found: list[SpeedUpCurve]) -> Figure:
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    panels = figure.subplots(-(-len(found) // COLUMNS), COLUMNS, sharex=True, sharey=True).flat
    for axes, curve in zip(panels, found, strict=False):
        _panel(axes, curve)
    figure.axes[0].set_ylim(0.8, 1.05 * max(np.nanmax(curve.best) for curve in found))
    figure.supxlabel("batch (sequences)", fontsize=9)
    figure.supylabel("speed-up a token", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


def _panel(axes: Any, curve: SpeedUpCurve) -> None:
    axes.plot(curve.batches, curve.best, "o-", color="#1f9e6e", label="best number of drafts")
    axes.plot(curve.batches, curve.at_three, "--", color="#d06a00", label="3 drafts")
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.minorticks_off()
    axes.set_xticks([1, 8, 64, 512], ["1", "8", "64", "512"])
    axes.set_yticks([1, 2, 3])
    axes.grid(axis="x", visible=False)
    axes.set_title(curve.label.replace(" on ", "\n"), fontsize=8)
