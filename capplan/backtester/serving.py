"""Decode time a token of served rows."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from capplan.backtester.checkpoints import known_model
from capplan.backtester.deployment import (
    Deployment,
    UnclearError,
    deployment,
    is_sparse,
    requests_of,
)
from capplan.backtester.tpot import Steps, tpot_s
from capplan.errors import InputError
from capplan.records.architecture import Architecture
from capplan.records.backtest import Predicted
from capplan.records.served import ServedRow

Compose = Callable[[Deployment], Steps]
"""Raises InputError where an operator has no table."""
OUTSIDE = "a step leaves the operators' tables"


def predicted_rows(
    rows: Iterable[ServedRow],
    known: Collection[str],
    architecture: Callable[[str], Architecture],
    compose: Compose,
) -> Iterator[Predicted]:
    """Predictions of rows, in their order.

    Args:
        rows: What was served.
        known: Names of known models.
        architecture: A known model by its name.
        compose: Step times of a deployment.
    """
    for row in rows:
        name = known_model(row.checkpoint, known)
        if name is None:
            # Whether an unknown model has experts is unknown; rows name their precision if so.
            yield _refused(row, row.checkpoint, row.experts is not None, "no such model is known")
            continue
        yield _predicted(row, architecture(name), compose)


def _predicted(row: ServedRow, model: Architecture, compose: Compose) -> Predicted:
    sparse = is_sparse(model)
    try:
        asked = deployment(row, model)
        steps = compose(asked)
    except UnclearError as unclear:
        return _refused(row, model.name, sparse, str(unclear))
    except InputError as error:
        reason = "; ".join(str(replace(one, place="", key="")) for one in error.complaints)
        return _refused(row, model.name, sparse, reason)
    if steps.capacity_tokens < row.input_tokens + row.output_tokens:
        return _refused(row, model.name, sparse, "weights and one request do not fit the memory")
    time_s = tpot_s(steps, requests_of(row, asked.split))
    if not np.isfinite(time_s):
        return _refused(row, model.name, sparse, OUTSIDE)
    return _of(row, model.name, sparse, time_s, None)


def _refused(row: ServedRow, model: str, sparse: bool, reason: str) -> Predicted:
    return _of(row, model, sparse, None, reason)


def _of(
    row: ServedRow, model: str, sparse: bool, predicted: float | None, refused: str | None
) -> Predicted:
    return Predicted(
        what="tpot",
        model=model,
        gpu=row.gpu,
        engine=row.engine,
        sparse=sparse,
        measured=row.tpot_s,
        predicted=predicted,
        refused=refused,
        source=row.name,
    )
