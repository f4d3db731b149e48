"""A distribution of token counts as weighted quantiles."""

import math
from statistics import NormalDist

import numpy as np

from capplan.physics.surface import Array

REPORTED = (0.5, 0.9, 0.95, 0.99)
"""Percentiles that objectives may name: each has a node of its own, of weight nought."""

_EDGES = np.array([*np.arange(0.0, 0.9, 0.05), 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0])
PROBABILITIES = np.concatenate([(_EDGES[1:] + _EDGES[:-1]) / 2, REPORTED])
WEIGHTS = np.concatenate([np.diff(_EDGES), np.zeros(len(REPORTED))])
"""Weights of the nodes at PROBABILITIES: finer in the tail, where the long prompts are."""


def lognormal_nodes(mean_tokens: float, cv: float, max_tokens: float) -> Array:
    """Quantiles of a log-normal with this mean and coefficient of variation, at each node.

    Cut at max_tokens, then scaled so that the mean is the one stated: what is stated was observed
    with the cut in force.
    """
    sigma = math.sqrt(math.log1p(cv**2))
    median = mean_tokens * math.exp(-(sigma**2) / 2)
    z = np.array([NormalDist().inv_cdf(p) for p in PROBABILITIES])
    return with_mean(median * np.exp(sigma * z), mean_tokens, max_tokens)


def quantile_nodes(quantiles: dict[float, float], max_tokens: float) -> Array:
    """Quantiles between known ones, straight in the logarithm; 1 token at 0, max_tokens at 1.

    Args:
        quantiles: Probability to tokens, at least two.
        max_tokens: The longest. [tokens]
    """
    known = {0.0: 1.0} | quantiles | {1.0: max_tokens}
    places = sorted(known)
    logs = np.log([known[place] for place in places])
    return np.asarray(np.exp(np.interp(PROBABILITIES, places, logs)))


def with_mean(nodes: Array, mean_tokens: float, max_tokens: float) -> Array:
    """Nodes scaled to a stated mean under the cap; a mean at the cap gives the cap throughout."""
    # The capped mean rises with the scale, so halving the bracket of its logarithm finds it.
    low, high = 0.0, math.log(max_tokens / float(nodes.min()))
    low = min(low, math.log(mean_tokens / max_tokens))
    for _ in range(50):
        middle = (low + high) / 2
        if WEIGHTS @ np.minimum(nodes * math.exp(middle), max_tokens) < mean_tokens:
            low = middle
        else:
            high = middle
    return np.minimum(nodes * math.exp(high), max_tokens)
