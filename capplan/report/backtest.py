"""Errors of predictions, as tables."""

from collections.abc import Iterator
from typing import Final

from capplan.records.backtest import Backtest, ErrorGroup
from capplan.report import numbers
from capplan.report.layout import Note, Report, Table

TITLES: Final = {
    "tpot": "Time per output token of served models",
    "moe_layer": "Layers of experts, on routings that were not fitted",
    "cycle_ratio": "A round of speculation over a plain step",
    "speed_up": "Speed-up by speculation",
    "acceptance": "Tokens per round, from the first three draft lengths",
}
SHAPES: Final = 12
"""Most names of a table: of more, their GPU and engine say enough."""


def report(found: Backtest) -> Report:
    """Figures, error tables, reasons of refusals."""
    return Report(
        title="Predictions beside published measurements",
        subtitle=(f"capplan {found.capplan}",),
        tables=(_figures(found), *_tables(found)),
        notes=(
            Note(
                "Refused",
                tuple(f"{one.rows} x {one.what}: {one.reason}" for one in found.refusals),
            ),
        ),
    )


def _figures(found: Backtest) -> Table:
    rows = (
        ("TPOT, sparse models, median", share(found.serving_tpot_median_ape_moe), "12 %"),
        ("TPOT, sparse models, mean", share(found.serving_tpot_mean_ape_moe), "20 %"),
        ("TPOT, dense models, median", share(found.serving_tpot_median_ape_dense), "12 %"),
        ("TPOT, dense models, mean", share(found.serving_tpot_mean_ape_dense), "20 %"),
        ("served rows refused", share(found.serving_refused_share), "20 %"),
        ("layers of experts, median", share(found.moe_layer_median_ape), "4 %"),
        ("cycle ratio, median", share(found.cycle_ratio_median_ape), ""),
        ("speed-ups with the right sign, of decided", share(found.speedup_sign_agreement), "90 %"),
        ("speed-ups undecided", share(found.speedup_undecided_share), "30 %"),
        ("tokens per round, median", share(found.acceptance_curve_median_ape), ""),
    )
    return Table("Absolute errors", ("", "found", "bar"), rows)


def _tables(found: Backtest) -> Iterator[Table]:
    for what, title in TITLES.items():
        groups = [group for group in found.groups if group.what == what]
        rows: list[tuple[str, ...]] = []
        for by in ("all", "model") if what == "acceptance" else ("all", "model", "gpu", "engine"):
            own = [group for group in groups if group.by == by]
            if len(own) <= SHAPES or what == "tpot":
                rows += [_row(group) for group in own]
        if rows:
            yield Table(title, ("", "rows", "refused", "median", "mean", "lean"), tuple(rows))


def _row(group: ErrorGroup) -> tuple[str, ...]:
    lean = numbers.ABSENT if group.median_error is None else f"{100 * group.median_error:+.1f} %"
    return (
        group.name,
        f"{group.rows:,}",
        f"{group.refused:,}",
        share(group.median_ape),
        share(group.mean_ape),
        lean,
    )


def share(value: float | None) -> str:
    """A part as per cent, one decimal.

    >>> share(0.0849), share(None)
    ('8.5 %', '-')
    """
    return numbers.ABSENT if value is None else f"{100 * value:.1f} %"
