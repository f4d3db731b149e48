"""A step-time model fitted to a profile's points, kept with what it gets wrong."""

from typing import Literal

from pydantic import Field

from capplan.records.base import Record
from capplan.units import Count, Seconds, SmallRatio, SquareSeconds

Term = Literal["decode", "verify", "expert", "token", "beyond_tile", "kv_token", "kv_query"]
Axis = Literal["batch", "context_tokens", "query_tokens"]


class Fit(Record):
    """Step time as a sum of terms.

    T = decode or verify + expert·U + token·n + beyond_tile·max(0, n − tile) + kv_token·B·c
    + kv_query·B·c·(q − 1), with n = B·q tokens and U distinct experts.
    """

    coefficients_s: dict[Term, Seconds]
    covariance_s2: tuple[tuple[SquareSeconds, ...], ...] = Field(min_length=7, max_length=7)
    """In the order above; noughts where a bound holds a coefficient."""
    tile_tokens: Count
    left_out_error: SmallRatio
    """Median absolute error of a step predicted without itself, over its time."""
    left_out_error_p90: SmallRatio
    """The error that nine in ten steps stay below."""
    edge_error: dict[Axis, SmallRatio]
    """Median absolute error of the axis's largest value, predicted without it. Axes with too few
    values are left out."""
