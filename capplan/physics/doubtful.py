"""Measured steps that cannot be: real tables hold some, and no fit should smooth them away.

A step that does more cannot be faster: verification than decoding at the same batch and context, a
larger batch or a longer context than a smaller. Where intervals are known, only steps whose
intervals lie apart count, so noise is not taken for physics.
"""

import numpy as np
from numpy.typing import NDArray

from capplan.physics.surface import Array

Rows = NDArray[np.bool_]


def faster_than_decoding(places: Array, low_s: Array, high_s: Array) -> Rows:
    """Verification steps that are faster than decoding at the same batch and context.

    Args:
        places: Batch, context_tokens and query_tokens of each step. [rows, 3]
        low_s: Lower end of its time, or the time. [rows]
        high_s: Upper end of it, or the time. [rows]

    Returns:
        Which rows are. [rows]
    """
    plain = {
        (batch, context): low
        for (batch, context, query), low in zip(places.tolist(), low_s.tolist(), strict=True)
        if query == 1
    }
    least = np.array([plain.get((batch, context), 0.0) for batch, context, _ in places.tolist()])
    return (places[:, 2] > 1) & (high_s < least)


def falling(places: Array, low_s: Array, high_s: Array, axis: int) -> Rows:
    """Steps that are faster than the one next below them along an axis.

    Args:
        places: As in `faster_than_decoding`. [rows, 3]
        low_s: The same. [rows]
        high_s: The same. [rows]
        axis: 0 for the batch, 1 for the context.

    Returns:
        Which rows are. [rows]
    """
    others = [column for column in range(places.shape[1]) if column != axis]
    order = np.lexsort([places[:, axis], *places[:, others].T])
    ordered = places[order]
    alike = (ordered[1:, others] == ordered[:-1, others]).all(axis=1)
    found = np.zeros(len(places), dtype=bool)
    found[order[1:]] = alike & (high_s[order[1:]] < low_s[order[:-1]])
    return found
