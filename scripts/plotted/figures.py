"""The figures: light files whose ink is legible on white and on black."""

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from plotted import Tree
from plotted.fleet import best_length, ratio

INK = "#7a7a7a"
COLOURS = {1: "#2f7ed8", 2: "#a05ad0", 3: "#d06a00", 5: "#1f9e6e", 7: "#a05ad0"}
TITLES = {"moe": "Kimi-K2.5 on 8 H200 (MoE, 1T)", "dense": "Llama-3.1-70B on 4 H200 (dense)"}
LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "best": ("best length", {"color": COLOURS[5], "linewidth": 6, "alpha": 0.4}),
    "always:1": ("1 draft", {"color": COLOURS[1], "marker": "o"}),
    "always:3": ("3 drafts", {"color": COLOURS[3], "marker": "s"}),
    "always:7": ("7 drafts", {"color": COLOURS[7], "marker": "^"}),
    "by-load": ("by load", {"color": INK, "linestyle": "--"}),
}
STYLE = {
    # Text stays text, and names do not change from run to run: small files, small changes.
    "svg.fonttype": "none",
    "svg.hashsalt": "capplan",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color", "grid.color"), INK),
    "grid.alpha": 0.25,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
}
_COORDINATE = re.compile(r'(?<=[ "])\d+\.\d{3,}(?=[ "\n])')
"""Inside a tag: texts stand between angle brackets."""
TICKS_MS = (10, 14, 20, 30, 40, 60, 100, 200)


def draw(tree: Tree, folder: Path) -> list[Path]:
    """Writes every figure and says where."""
    paths = []
    with mpl.rc_context(STYLE):
        for name, figure in FIGURES.items():
            paths.append(folder / f"{name}.svg")
            save(figure(tree), paths[-1])
    return paths


def save(figure: Figure, path: Path) -> None:
    """Writes a figure as a small file that does not change from run to run."""
    drawn = StringIO()
    metadata = {"Date": None, "Creator": None}
    figure.savefig(drawn, format="svg", transparent=True, metadata=metadata)
    flat = re.sub(r"\n +", "\n", drawn.getvalue())
    path.write_text(_COORDINATE.sub(_shorter, flat))


def _shorter(number: re.Match[str]) -> str:
    """A hundredth of a point is seen by nobody."""
    return f"{float(number[0]):.2f}"


def _fleet(tree: Tree) -> Figure:
    figure = Figure(figsize=(7.6, 5.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True).flat
    for axes, case in zip(panels, tree["fleet"], strict=True):
        _fleet_panel(axes, case)
    figure.supxlabel("objective: TPOT p99 [ms]", fontsize=9)
    figure.supylabel("replicas with speculation / without", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(LINES))
    return figure


def _fleet_panel(axes: Any, case: Tree) -> None:
    rows = case["objectives"]
    limits = [1e3 * row["tpot_p99_s"] for row in rows]
    for policy, (label, look) in LINES.items():
        found = [ratio(row["capacity_per_s"], policy) for row in rows]
        shown = [(x, y) for x, y in zip(limits, found, strict=True) if y is not None]
        axes.plot(*zip(*shown, strict=True), label=label, **look)
    kept = [row["capacity_per_s"]["plain"] > 0 for row in rows]
    edge = (limits[kept.index(True)] * limits[kept.index(True) - 1]) ** 0.5
    axes.axvspan(limits[0], edge, color=INK, alpha=0.2, linewidth=0)
    axes.text(limits[0] * 1.03, 0.06, "no plain fleet", rotation=90, fontsize=8, va="bottom")
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(limits[0], limits[-1])
    axes.set_ylim(0, 1.2)
    axes.minorticks_off()
    axes.set_xticks(TICKS_MS, [str(tick) for tick in TICKS_MS])
    axes.set_title(f"{TITLES[case['model']]}: {case['workload']}", fontsize=9)


def _equilibrium(tree: Tree) -> Figure:
    figure = Figure(figsize=(7.6, 3.7), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, model in zip(panels, TITLES, strict=True):
        for length in (1, 3, 5):
            rows = [r for r in tree["equilibrium"]
                    if (r["model"], r["draft_tokens"]) == (model, length)]  # fmt: skip
            fixed, seen, formula = (
                [row.get(key) for row in rows]
                for key in ("at_fixed_batch", "at_equilibrium", "first_order")
            )
            if None not in formula:
                axes.plot(fixed, formula, "^", markerfacecolor="none", color=COLOURS[length])
            axes.plot(fixed, seen, "o", color=COLOURS[length], label=f"γ = {length}")
        axes.plot([0.8, 1.9], [0.8, 1.9], color=INK, linewidth=0.8)
        axes.annotate("equal", (1.72, 1.72), (1.74, 1.56), fontsize=8)
        axes.set_title(TITLES[model], fontsize=9)
        axes.set_xlabel("speed-up at plain decoding's batch")
    panels[0].set_ylabel("speed-up at equal arrival rate")
    panels[0].plot([], [], "^", markerfacecolor="none", color=INK, label="first order")
    panels[0].legend(loc="upper left")
    return figure


def _spread(tree: Tree) -> Figure:
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    for axes, case in zip(figure.subplots(1, 2), tree["spread"], strict=True):
        rows = case["deviations"]
        spread = [row["per_request_sd"] for row in rows]
        for policy in rows[0]["capacity_per_s"]:
            length = int(policy.removeprefix("always:"))
            rates = [row["capacity_per_s"][policy] for row in rows]
            axes.plot(spread, rates, "-o", color=COLOURS[length], label=f"γ = {length}")
        best = [row["capacity_per_s"][best_length(row["capacity_per_s"])] for row in rows]
        axes.plot(spread, best, "o", color=INK, markerfacecolor="none", markersize=9, label="best")
        axes.set_ylim(0)
        axes.set_xticks(spread, [f"{deviation:g}" for deviation in spread])
        limit = f"TPOT p99 {1e3 * case['tpot_p99_s']:g} ms"
        axes.set_title(f"MoE, {case['workload']}, {limit}", fontsize=9)
        axes.set_xlabel("sd of acceptance between requests")
    figure.axes[0].set_ylabel("requests a second, one replica")
    figure.axes[0].legend(loc="lower left", ncols=2)
    return figure


FIGURES: dict[str, Callable[[Tree], Figure]] = {
    "fleet": _fleet,
    "equilibrium": _equilibrium,
    "spread": _spread,
}
