"""A profile's steps as a fit to keep with it."""

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.step_fit import TERMS, StepRows, edge_errors, fit_steps
from capplan.physics.surface import Array
from capplan.records.fit import Fit
from capplan.records.profile import StepCell


def fitted_steps(cells: tuple[StepCell, ...], least_s: ArrayLike = 0.0) -> Fit | None:
    """Fits a profile's steps.

    Args:
        cells: The steps.
        least_s: Least that each coefficient can be, in the order of `step_fit.TERMS`. [terms, s]

    Returns:
        The fit; None where there are too few steps for one, or for saying what it gets wrong.
    """
    rows = _rows(cells)
    if len(cells) <= len(TERMS):
        return None
    fit = fit_steps(rows, least_s)
    missed = np.abs(fit.left_out[np.isfinite(fit.left_out)])
    if not len(missed):
        return None
    return Fit(
        coefficients_s=dict(zip(TERMS, fit.coefficients_s.tolist(), strict=True)),
        covariance_s2=tuple(tuple(line) for line in fit.covariance.tolist()),
        tile_tokens=fit.tile_tokens,
        left_out_error=float(np.median(missed)),
        left_out_error_p90=float(np.quantile(missed, 0.9)),
        edge_error=edge_errors(rows, least_s),
    )


def _rows(cells: tuple[StepCell, ...]) -> StepRows:
    def column(name: str) -> Array:
        return np.array([getattr(cell, name) for cell in cells], dtype=float)

    counted = all(cell.distinct_experts is not None for cell in cells)
    experts = column("distinct_experts") if counted else np.zeros(len(cells))
    return StepRows(
        batch=column("batch"),
        context_tokens=column("context_tokens"),
        query_tokens=column("query_tokens"),
        distinct_experts=experts,
        step_s=column("step_s"),
    )
