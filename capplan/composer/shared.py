"""Shared experts: every token passes them, beside the routed ones.

All engines run them on a stream of their own while the routed experts run. Launching them costs
nothing then; what they read and compute still does.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from capplan.composer.asked import Asked
from capplan.composer.matrices import BYTES, product
from capplan.composer.small import small
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.surface import Array
from capplan.records.architecture import Moe

TILE: Final = 64
"""Rows that a product takes no longer for than for one: the least tile of kernels."""


def shared_terms(asked: Asked, tables: Silicon, share: Moe, count: int) -> Iterator[Term]:
    """Shared experts of one GPU's share of a layer.

    Raises:
        Refused: Their matrices have no table.
    """
    hidden, width = asked.model.hidden_size, share.shared_width
    for what, outputs, inputs in (
        ("shared expert, up", width * (1 + share.gated), hidden),
        ("shared expert, down", hidden, width),
    ):
        yield _beside(tables, what, asked.weights, (outputs, inputs), count)
    if share.shared_gate:
        yield _beside(tables, "gate of the shared expert", "bf16", (1, hidden), count)
    yield small(tables, "joining shared and routed experts", hidden, count)


def _beside(tables: Silicon, what: str, precision: str, shape: tuple[int, int], count: int) -> Term:
    curve, error = product(tables, what, precision, shape)
    read_s = shape[0] * shape[1] * BYTES[precision] / tables.limits.bandwidth_bytes_per_s

    launched_s = max(
        time_s for rows, time_s in zip(curve.sizes, curve.times_s, strict=True) if rows <= TILE
    )

    def at(load: Load) -> Array:
        time_s = curve.within(np.maximum(load.tokens, 1))
        return np.asarray(read_s + np.maximum(0.0, time_s - launched_s))

    return Term("shared", what, count, at, (curve.source,), error)
