"""Overlap of one sequence's tokens, from what is published about it.

Neighbours share more experts than tokens farther apart. A step's U depends on all pairs of its
tokens, so one overlap holds for one width: it is the mean over the pairs, and a step of another
width has another. Extending a published overlap to more tokens than it was seen at errs: nearer
pairs weigh more in a narrow step.
"""

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.experts import Routing


def mean_overlap(overlap_by_lag: ArrayLike, query_tokens: int) -> float:
    """Overlap of a mean pair among the tokens of one sequence in a step.

    Args:
        overlap_by_lag: Overlap of tokens 1, 2, … apart; more than the step needs is left out.
            [lags]
        query_tokens: Tokens of the sequence in the step, two or more.

    Raises:
        ValueError: The step holds tokens farther apart than the overlaps reach.

    >>> round(mean_overlap([0.381, 0.329, 0.301], query_tokens=4), 4)
    0.3503
    """
    overlaps = np.asarray(overlap_by_lag, dtype=float)
    if len(overlaps) < query_tokens - 1:
        raise ValueError(
            f"{query_tokens} tokens lie up to {query_tokens - 1} apart; "
            f"the overlaps reach {len(overlaps)}"
        )
    pairs = np.arange(query_tokens - 1, 0, -1)
    return float(pairs @ overlaps[: query_tokens - 1] / pairs.sum())


def routing_by_lag(
    experts: int, experts_per_token: int, across: float, overlap_by_lag: ArrayLike
) -> Routing:
    """Routing whose overlap fades as it was seen to.

    Args:
        experts: Routed experts of a layer.
        experts_per_token: Of them each token chooses.
        across: Overlap of tokens of different sequences.
        overlap_by_lag: Overlap of tokens 1, 2, … apart in one sequence. [lags] One below `across`
            is taken for it: tokens of one text that avoid each other's experts were never seen,
            noise that looks like it is.
    """
    overlaps = np.maximum(np.asarray(overlap_by_lag, dtype=float), across)
    within = mean_overlap(overlaps, len(overlaps) + 1)
    by_lag = tuple(overlaps.tolist())
    return Routing(experts, experts_per_token, across, within, by_lag=by_lag)
