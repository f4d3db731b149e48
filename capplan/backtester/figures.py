"""Figures of a backtest from its rows."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, get_args

import numpy as np

from capplan.backtester import pairs
from capplan.records.backtest import Backtest, ErrorGroup, Predicted, Quantity, Refusal

WHATS: Final[tuple[Quantity, ...]] = get_args(Quantity)
By = Literal["all", "model", "gpu", "engine"]
BYS: Final[tuple[By, ...]] = get_args(By)
OFTEN: Final = ("moe_layer",)
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
    layers = _of(rows, "moe_layer")
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
        speedup_pairs=len(pairs.pairs(rows)),
        speedup_sign_agreement=pairs.agreement(rows),
        speedup_undecided_share=pairs.undecided(rows),
        acceptance_curve_median_ape=median_ape(_of(rows, "acceptance")),
        groups=tuple(_groups(rows)),
        refusals=_refusals(rows),
        rows=tuple(row for row in rows if row.what not in OFTEN),
    )


def _groups(rows: Sequence[Predicted]) -> Iterator[ErrorGroup]:
    for what in WHATS:
        for by in BYS:
            found: dict[str, list[Predicted]] = defaultdict(list)
            for row in _of(rows, what):
                found["all" if by == "all" else getattr(row, by)].append(row)
            for name in sorted(found):
                yield _group(what, by, name, found[name])


def _group(what: Quantity, by: By, name: str, rows: Sequence[Predicted]) -> ErrorGroup:
    errors = [row.error for row in rows if row.error is not None]
    return ErrorGroup(
        what=what,
        by=by,
        name=name,
        rows=len(rows),
        refused=len(rows) - len(errors),
        median_ape=median_ape(rows),
        mean_ape=mean_ape(rows),
        median_error=float(np.median(errors)) if errors else None,
    )


def _refusals(rows: Iterable[Predicted]) -> tuple[Refusal, ...]:
    counts = Counter((row.what, row.refused) for row in rows if row.refused is not None)
    return tuple(
        Refusal(what=what, reason=reason, rows=count)
        for (what, reason), count in counts.most_common()
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


def _of(rows: Iterable[Predicted], what: Quantity) -> list[Predicted]:
    return [row for row in rows if row.what == what]
