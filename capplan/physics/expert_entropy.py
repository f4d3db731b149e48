"""Chance that one sequence's tokens all miss an expert, by the principle of maximum entropy.

Known are how often the expert is chosen and how alike tokens 1, 2, … apart choose. Of all ways in
which q tokens may choose or miss it, the one that keeps to this and supposes nothing else is
exponential in the number of choices and of pairs at each distance. Its weights are the minimum of a
convex function of q numbers, found by Newton's method. Iterative proportional fitting finds the
same more slowly, and the packages for it work on tables, of which there would be one an expert.

Source:
    Jaynes, "Information Theory and Statistical Mechanics", Physical Review 106, 1957; for pairs at
    each distance it is the finite chain of the Ising model with couplings of any range.
"""

from functools import lru_cache
from typing import Final

import numpy as np

from capplan.physics.surface import Array

MOST_TOKENS: Final = 12
"""All 2^q ways are counted out."""
_STEPS: Final = 200
_NO_WAY: Final = "no way of choosing experts has these overlaps by lag"


def missed(chance: Array, correlation_by_lag: tuple[float, ...], query_tokens: int) -> Array:
    """Chance that none of a sequence's tokens chooses the expert.

    Args:
        chance: Popularity of each expert looked at, between 0 and 1. [experts]
        correlation_by_lag: Correlation of the choices of tokens 1, 2, … apart. [lags]
        query_tokens: Tokens of the sequence, 1 to `MOST_TOKENS`.

    Returns:
        [experts].

    Raises:
        ValueError: The correlations do not reach, no choices have them, or tokens are too many.
    """
    if query_tokens > min(MOST_TOKENS, len(correlation_by_lag) + 1):
        raise ValueError(
            f"overlaps by lag say nothing of {query_tokens} tokens: they reach "
            f"{len(correlation_by_lag)} and {MOST_TOKENS} tokens can be counted out"
        )
    # Rounding would leave nothing of an expert that is chosen always or never.
    popular = np.clip(chance, 1e-6, 1 - 1e-6)[:, None]
    apart = np.arange(1, query_tokens)
    correlation = np.array(correlation_by_lag[: query_tokens - 1])
    both = popular * (popular + (1 - popular) * correlation)
    wanted = np.concatenate([query_tokens * popular, (query_tokens - apart) * both], axis=1)
    return _weights(wanted, _counts(query_tokens))[:, 0]


@lru_cache(maxsize=16)
def _counts(tokens: int) -> Array:
    """Of each way to choose: how many tokens do, and pairs of them 1, 2, … apart. [ways, q]."""
    ways = (np.arange(2**tokens)[:, None] >> np.arange(tokens)) & 1
    pairs = [(ways[:, lag:] * ways[:, : tokens - lag]).sum(axis=1) for lag in range(1, tokens)]
    return np.stack([ways.sum(axis=1), *pairs], axis=1).astype(float)


def _weights(wanted: Array, counts: Array) -> Array:
    """Probabilities of the ways whose mean counts are the wanted ones. [experts, ways]."""
    tokens = counts.shape[1]
    popular = wanted[:, 0] / tokens
    parameters = np.zeros_like(wanted)
    parameters[:, 0] = np.log(popular / (1 - popular))
    value, weights = _dual(parameters, wanted, counts)
    for _ in range(_STEPS):
        mean = weights @ counts
        slope = wanted - mean
        going = np.any(np.abs(slope) > 1e-7 * wanted, axis=1)
        if not going.any():
            return weights
        spread = np.einsum("ew,wi,wj->eij", weights[going], counts, counts, optimize=True)
        spread -= mean[going, :, None] * mean[going, None, :]
        scale = np.einsum("eii->e", spread)[:, None, None] / tokens
        ridged = spread + 1e-13 * scale * np.eye(tokens)
        try:
            step = np.linalg.solve(ridged, slope[going][..., None])[..., 0]
        except np.linalg.LinAlgError as error:
            raise ValueError(_NO_WAY) from error
        parameters[going], value[going], weights[going] = _climbed(
            parameters[going], step, value[going], wanted[going], counts
        )
    raise ValueError(_NO_WAY)


def _climbed(
    parameters: Array, step: Array, value: Array, wanted: Array, counts: Array
) -> tuple[Array, Array, Array]:
    """Newton's step, halved for each expert until it no longer overshoots."""
    size = np.ones((len(value), 1))
    for _ in range(30):
        found, weights = _dual(parameters + size * step, wanted, counts)
        worse = ~(found >= value - 1e-10 * np.abs(value))
        if not worse.any():
            break
        size[worse] /= 2
    return parameters + size * step, found, weights


def _dual(parameters: Array, wanted: Array, counts: Array) -> tuple[Array, Array]:
    """What Newton's method raises, for each expert, and the weights of the ways."""
    exponent = parameters @ counts.T
    top = exponent.max(axis=1, keepdims=True)
    raised = np.exp(exponent - top)
    total = raised.sum(axis=1, keepdims=True)
    value = np.einsum("ei,ei->e", parameters, wanted) - (top + np.log(total))[:, 0]
    return value, raised / total
