"""Figures of a backtest from its rows."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, get_args

import numpy as np

from capplan.backtester import pairs
from capplan.backtester.moe_layers import LayerErrors
from capplan.physics.surface import Array
from capplan.records.backtest import Backtest, ErrorGroup, Predicted, Quantity, Refusal

WHATS: Final[tuple[Quantity, ...]] = get_args(Quantity)
By = Literal["all", "model", "gpu", "engine"]
BYS: Final[tuple[By, ...]] = get_args(By)


def backtest(
    version: str, rows: Sequence[Predicted], layers: Sequence[LayerErrors] = ()
) -> Backtest:
    """All figures.

    Args:
        version: Of the program.
        rows: All that was predicted, but layers of experts.
        layers: These, with too many rows to list them.
    """
    served = _of(rows, "tpot")
    sparse = [row for row in served if row.sparse]
    dense = [row for row in served if not row.sparse]
    of_layers = layer_sizes(layers)
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
        moe_layer_rows=len(of_layers),
        moe_layer_median_ape=float(np.median(of_layers)) if len(of_layers) else None,
        cycle_ratio_median_ape=median_ape(_of(rows, "cycle_ratio")),
        speedup_pairs=len(pairs.pairs(rows)),
        speedup_sign_agreement=pairs.agreement(rows),
        speedup_undecided_share=pairs.undecided(rows),
        acceptance_curve_median_ape=median_ape(_of(rows, "acceptance")),
        groups=(*_groups(rows), *_layer_groups(layers)),
        refusals=_refusals(rows),
        rows=tuple(rows),
    )


def _groups(rows: Sequence[Predicted]) -> Iterator[ErrorGroup]:
    for what in WHATS:
        for by in BYS:
            found: dict[str, list[Predicted]] = defaultdict(list)
            for row in _of(rows, what):
                found["all" if by == "all" else getattr(row, by)].append(row)
            for name in sorted(found):
                yield _group(what, by, name, found[name])


def _layer_groups(layers: Sequence[LayerErrors]) -> Iterator[ErrorGroup]:
    for by in BYS:
        found: dict[str, list[Array]] = defaultdict(list)
        for layer in layers:
            found[_layer_name(layer, by)].append(layer.errors)
        for name in sorted(found):
            errors = np.concatenate(found[name])
            yield ErrorGroup(
                what="moe_layer",
                by=by,
                name=name,
                rows=len(errors),
                refused=0,
                median_ape=float(np.median(np.abs(errors))),
                mean_ape=float(np.mean(np.abs(errors))),
                median_error=float(np.median(errors)),
            )


def _layer_name(layer: LayerErrors, by: By) -> str:
    shape = f"{layer.experts_per_token} of {layer.experts} experts"
    return {"all": "all", "model": shape, "gpu": layer.gpu, "engine": layer.engine}[by]


def layer_sizes(layers: Iterable[LayerErrors]) -> Array:
    """Absolute errors of all rows, as a part of the published time. [rows]."""
    return np.asarray(np.abs(np.concatenate([np.empty(0), *(layer.errors for layer in layers)])))


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
