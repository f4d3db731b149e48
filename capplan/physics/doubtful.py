"""Measured steps that cannot be: real tables hold some, and no fit should smooth them away.

A step that does more cannot be faster: verification than decoding at the same batch and context, a
larger batch or a longer context than a smaller. Where intervals are known, only steps whose
intervals lie apart count, so noise is not taken for physics.
"""

import numpy as np
from numpy.typing import NDArray

from capplan.physics.surface import Array
from capplan.records.profile import StepCell

Rows = NDArray[np.bool_]


def impossible_steps(cells: tuple[StepCell, ...]) -> dict[str, int]:
    """Counts of steps that cannot be, by what is wrong with them; those beyond noise alone."""
    places = np.array([(c.batch, c.context_tokens, c.query_tokens) for c in cells], dtype=float)
    # Without runs an interval says how sure a model is of itself, not how much a time scatters.
    low_s = np.array([(c.runs and c.low_s) or c.step_s for c in cells])
    high_s = np.array([(c.runs and c.high_s) or c.step_s for c in cells])
    found = {
        "verify faster than decoding at the same batch": faster_than_decoding(
            places, low_s, high_s
        ),
        "are faster than at the next smaller batch": falling(places, low_s, high_s, 0),
        "are faster than at the next shorter context": falling(places, low_s, high_s, 1),
    }
    return {wrong: int(rows.sum()) for wrong, rows in found.items() if rows.any()}


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
