"""A step-time model fitted to the points of a profile, with what it gets wrong.

T(B, q, c) = a_q + b·U + e·n + f·max(0, n − tile) + g·B·c + h·B·c·(q − 1), n = B·q tokens

a_q is one constant for decoding (q = 1) and one for verification: engines run other kernels there,
and a smooth curve through the jump is wrong on both sides. b reads an expert, e and f are work of a
token below and past the tile, g reads a cached token and h is what further query tokens take on it.
No term takes less than nought, nor less than physics allows where that is known.

Source:
    Huang et al., "MoESD" (arXiv 2505.19645), algorithm 1, fits such terms by bounded least squares;
    their context-free form has one constant and no cache.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from capplan.physics.surface import Array
from capplan.records.fit import Axis, Term

TERMS: Final[tuple[Term, ...]] = (
    "decode",
    "verify",
    "expert",
    "token",
    "beyond_tile",
    "kv_token",
    "kv_query",
)
AXES: Final[tuple[Axis, ...]] = ("batch", "context_tokens", "query_tokens")
TILES: Final = (16, 32, 64, 128, 256, 512)
"""Tokens at which matrices may turn compute-bound; the fit takes the one with least error."""


@dataclass(frozen=True)
class StepRows:
    """Points of a profile, one array a column. [rows]."""

    batch: Array
    context_tokens: Array
    query_tokens: Array
    distinct_experts: Array
    """Noughts in a dense model, or where nobody counted them."""
    step_s: Array

    def of(self, chosen: Array) -> "StepRows":
        """Some of the rows."""
        return StepRows(
            self.batch[chosen],
            self.context_tokens[chosen],
            self.query_tokens[chosen],
            self.distinct_experts[chosen],
            self.step_s[chosen],
        )

    def terms(self, tile_tokens: int) -> Array:
        """What each coefficient is multiplied by. [rows, terms]."""
        tokens, cached = self.batch * self.query_tokens, self.batch * self.context_tokens
        columns = (
            self.query_tokens == 1,
            self.query_tokens > 1,
            self.distinct_experts,
            tokens,
            np.maximum(0, tokens - tile_tokens),
            cached,
            cached * (self.query_tokens - 1),
        )
        return np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)


@dataclass(frozen=True)
class StepFit:
    """A fitted model of step time."""

    coefficients_s: Array
    """In the order of `TERMS`. [terms, s]"""
    covariance: Array
    """Of the coefficients; noughts where a bound holds one. [terms, terms, s²]"""
    tile_tokens: int
    left_out: Array
    """Predicted over measured time less one, each row predicted without itself; NaN where a row
    alone decides a coefficient, as the only verification would. [rows]"""

    def at(self, rows: StepRows) -> Array:
        """Step times at the rows' places; their own times are not read. [rows, s]."""
        return np.asarray(rows.terms(self.tile_tokens) @ self.coefficients_s)


def fit_steps(rows: StepRows, least_s: ArrayLike = 0.0) -> StepFit:
    """Fits the model by least squares on relative error.

    Args:
        rows: At least one row more than there are terms.
        least_s: Least that each coefficient can be, such as bytes over bandwidth. [terms, s]

    Returns:
        The fit. A row's left-out error comes from the leverage it has on its own prediction, with
        the coefficients that bounds hold kept there.

    Raises:
        ValueError: Too few rows.
    """
    if len(rows.step_s) <= len(TERMS):
        raise ValueError(f"a fit needs more than {len(TERMS)} steps, found {len(rows.step_s)}")
    floor = np.broadcast_to(np.asarray(least_s, dtype=float), len(TERMS))
    fitted = [(tile, _bounded(rows, tile, floor)) for tile in TILES]
    tile, above = min(fitted, key=lambda one: _misfit(rows, one[0], floor + one[1]))
    relative = rows.terms(tile) / rows.step_s[:, None]
    missed = relative @ (floor + above) - 1
    free = above > 0
    inverse = np.linalg.pinv(relative[:, free].T @ relative[:, free])
    leverage = np.einsum("ij,jk,ik->i", relative[:, free], inverse, relative[:, free])
    alone = leverage > 1 - 1e-6
    noise = float(missed @ missed) / (len(missed) - int(free.sum()))
    covariance = np.zeros((len(TERMS), len(TERMS)))
    covariance[np.ix_(free, free)] = noise * inverse
    return StepFit(
        coefficients_s=floor + above,
        covariance=covariance,
        tile_tokens=tile,
        left_out=np.where(alone, np.nan, missed / np.where(alone, 1, 1 - leverage)),
    )


def edge_errors(rows: StepRows, least_s: ArrayLike = 0.0) -> dict[Axis, float]:
    """How far the fit is off just outside its points: each axis's last value, predicted without it.

    Returns:
        Median absolute error over the largest batch, the longest context and the most query tokens,
        by the axis's name; axes are left out along which too little would remain to be fitted.
    """
    found = {}
    for axis in AXES:
        along = getattr(rows, axis)
        inside = along < along.max()
        # From one value alone nothing rises along the axis.
        if len(np.unique(along[inside])) > 1 and inside.sum() > len(TERMS):
            last = rows.of(~inside)
            predicted = fit_steps(rows.of(inside), least_s).at(last)
            found[axis] = float(np.median(np.abs(predicted / last.step_s - 1)))
    return found


def _bounded(rows: StepRows, tile: int, floor: Array) -> Array:
    """Coefficients above their floors."""
    relative = rows.terms(tile) / rows.step_s[:, None]
    above, _ = nnls(relative, 1 - relative @ floor)
    return np.asarray(above)


def _misfit(rows: StepRows, tile: int, coefficients_s: Array) -> float:
    missed = rows.terms(tile) @ coefficients_s / rows.step_s - 1
    return float(missed @ missed)
