"""Figures of a backtest from its rows."""

from collections.abc import Iterable, Sequence

import numpy as np

from capplan.records.backtest import Backtest, Predicted, Quantity

OFTEN = ("moe_layer",)
"""Quantities with too many rows to list them."""


def backtest(version: str, rows: Sequence[Predicted]) -> Backtest:
    """All figures.

    Args:
        version: Of the program.
        rows: All that was predicted.
    """
    served = _of(rows, "tpot")
    sparse = [row for row in served if row.sparse]
    dense = [row for row in served if not row.sparse]
    layers, pairs = _of(rows, "moe_layer"), _of(rows, "speed_up")
    return Backtest(
        capplan=version,
        serving_rows=len(served),
        serving_tpot_median_ape=median_ape(served),
        serving_tpot_mean_ape=mean_ape(served),
        serving_refused_share=refused_share(served),
        serving_tpot_median_ape_moe=median_ape(sparse),
        serving_tpot_mean_ape_moe=mean_ape(sparse),
        serving_refused_share_moe=refused_share(sparse),
        serving_tpot_median_ape_dense=median_ape(dense),
        serving_tpot_mean_ape_dense=mean_ape(dense),
        serving_refused_share_dense=refused_share(dense),
        moe_layer_rows=len(layers),
        moe_layer_median_ape=median_ape(layers),
        cycle_ratio_median_ape=median_ape(_of(rows, "cycle_ratio")),
        speedup_pairs=sum(row.predicted is not None for row in pairs),
        speedup_sign_agreement=sign_agreement(pairs),
        speedup_undecided_share=undecided_share(pairs),
        acceptance_curve_median_ape=median_ape(_of(rows, "acceptance")),
        rows=tuple(row for row in rows if row.what not in OFTEN),
    )


def median_ape(rows: Iterable[Predicted]) -> float | None:
    """Median absolute error, as a part of the measured value."""
    found = [abs(row.error) for row in rows if row.error is not None]
    return float(np.median(found)) if found else None


def mean_ape(rows: Iterable[Predicted]) -> float | None:
    """Mean of the same."""
    found = [abs(row.error) for row in rows if row.error is not None]
    return float(np.mean(found)) if found else None


def refused_share(rows: Sequence[Predicted]) -> float | None:
    """Part of the rows without a prediction."""
    return sum(row.predicted is None for row in rows) / len(rows) if rows else None


def decided(row: Predicted) -> bool:
    """Whether both ends of a speed-up lie on one side of one."""
    if row.low is None or row.high is None:
        return row.predicted is not None
    return row.low > 1 or row.high < 1


def sign_agreement(pairs: Iterable[Predicted]) -> float | None:
    """Part of the decided pairs that were measured on the predicted side of one."""
    sides = [
        (row.predicted > 1) == (row.measured > 1)
        for row in pairs
        if row.predicted is not None and decided(row)
    ]
    return sum(sides) / len(sides) if sides else None


def undecided_share(pairs: Iterable[Predicted]) -> float | None:
    """Part of the predicted pairs that are not decided."""
    open_ = [not decided(row) for row in pairs if row.predicted is not None]
    return sum(open_) / len(open_) if open_ else None


def _of(rows: Iterable[Predicted], what: Quantity) -> list[Predicted]:
    return [row for row in rows if row.what == what]
