"""docs/validation.md in Markdown."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from capplan.backtester import pairs
from capplan.backtester.figures import layer_sizes, mean_ape, median_ape, refused_share
from capplan.backtester.moe_layers import LayerErrors
from capplan.records.backtest import Predicted
from capplan.report.backtest import share
from validated.texts import CHOSEN, HEAD, LAYERS, ROUNDS, SERVED, SHIPPED
from validated.tried import Halves, Tried

Rows = Sequence[Predicted]
LISTED: Final = 8
"""Most reasons of refusals that are listed."""


def document(found: Tried, curves: str) -> str:
    """The whole page.

    Args:
        found: All predictions.
        curves: The section of speed-up curves.
    """
    parts = [
        HEAD,
        SHIPPED if not found.whole else "",
        _bars(found),
        SERVED,
        _by(found.served, "model", lambda row: row.model),
        _by(found.served, "GPU", lambda row: row.gpu),
        _by(found.served, "engine", lambda row: row.engine),
        _refused(found.served.all, "rows"),
        CHOSEN,
        LAYERS,
        _layers(found.layers),
        ROUNDS,
        _rounds(found.rounds),
        _refused(found.rounds.all, "ratios"),
        curves,
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _bars(found: Tried) -> str:
    rows: list[tuple[str, float, Callable[[Rows], float | None], Halves]] = []
    for name, sparse in (("sparse", True), ("dense", False)):
        half = _kept(found.served, sparse=sparse)
        rows += [
            (f"TPOT, {name} models, median error", -0.12, median_ape, half),
            (f"TPOT, {name} models, mean error", -0.20, mean_ape, half),
            (f"TPOT, {name} models, refused", -0.20, refused_share, half),
        ]
    rows += [
        ("sign of speed-ups, of decided pairs", 0.90, pairs.agreement, found.rounds),
        ("speed-ups undecided", -0.30, pairs.undecided, found.rounds),
    ]
    layers = float(np.median(layer_sizes(found.layers)))
    lines = [
        *(_bar(name, bar, *map(of, (one.seen, one.held, one.all))) for name, bar, of, one in rows),
        _bar("layers of experts, median error", -0.04, None, None, layers),
    ]
    return _table(("", "bar", "half built on", "half held out", "all", "met"), lines)


def _bar(name: str, bar: float, *values: float | None) -> tuple[str, ...]:
    """A line; a bar below nought is one that errors may not exceed."""
    # Layers of experts are not split into halves.
    parts = [value for value in values[:2] if value is not None] or [values[2]]
    met = [value <= -bar if bar < 0 else value >= bar for value in parts if value is not None]
    words = {(): "-", (True,): "yes", (False,): "no"}.get(tuple(dict.fromkeys(met)), "in one half")
    sign = "at most" if bar < 0 else "at least"
    return name, f"{sign} {abs(bar):.0%}", *map(share, values), f"**{words}**"


def _kept(halves: Halves, *, sparse: bool) -> Halves:
    return Halves(
        tuple(row for row in halves.seen if row.sparse == sparse),
        tuple(row for row in halves.held if row.sparse == sparse),
    )


def _by(halves: Halves, what: str, name: Callable[[Predicted], str]) -> str:
    lines = []
    for one in sorted({name(row) for row in halves.all}):
        parts = [[row for row in half if name(row) == one] for half in (halves.seen, halves.held)]
        lines.append((one, *_errors(parts[0]), *_errors(parts[1])))
    half = ("rows", "refused", "median", "mean")
    return _table((what, *half, *(f"held-out {one}" for one in half)), lines)


def _errors(rows: Rows) -> tuple[str, ...]:
    if not rows:
        return ("-",) * 4
    refused = sum(row.predicted is None for row in rows)
    return f"{len(rows)}", f"{refused}", share(median_ape(rows)), share(mean_ape(rows))


def _layers(layers: Sequence[LayerErrors]) -> str:
    lines = []
    for gpu, engine in dict.fromkeys((one.gpu, one.engine) for one in layers):
        own = [one for one in layers if (one.gpu, one.engine) == (gpu, engine)]
        sizes = layer_sizes(own)
        median, tenth = np.median(sizes), np.quantile(sizes, 0.9)
        lines.append(
            (f"{gpu}, {engine}", f"{len(own)}", f"{sizes.size:,}", share(median), share(tenth))
        )
    return _table(("", "layers", "rows", "median", "nine in ten within"), lines)


def _rounds(halves: Halves) -> str:
    lines = []
    for name, rows in (("built on", halves.seen), ("held out", halves.held)):
        cycle = [row for row in rows if row.what == "cycle_ratio"]
        found = pairs.pairs(rows)
        lines.append(
            (
                name,
                f"{sum(row.predicted is not None for row in cycle)} of {len(cycle)}",
                share(median_ape(cycle)),
                f"{len(found)} of {sum(row.what == 'speed_up' for row in rows)}",
                f"{sum(row.measured < 1 for row in found)}",
                share(pairs.agreement(rows)),
                share(pairs.undecided(rows)),
            )
        )
    columns = ("half", "cycle ratios", "median error", "pairs", "losses among them",
               "sign right, of decided", "undecided")  # fmt: skip
    return _table(columns, lines)


def _refused(rows: Rows, what: str) -> str:
    reasons = [row.refused for row in rows if row.refused is not None]
    counted = sorted(set(reasons), key=lambda one: (-reasons.count(one), one))
    if not counted:
        return ""
    lines = [f"- {reasons.count(one)} {what}: {one}" for one in counted[:LISTED]]
    if len(counted) > LISTED:
        rest = sum(reasons.count(one) for one in counted[LISTED:])
        lines.append(f"- {rest} {what} for other reasons")
    return "\n".join(["Refused:", "", *lines])


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(_lines(columns, rows))


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|---" + "|---:" * (len(columns) - 1) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
