"""What a router's choices over real text say: popularity, overlaps, and U counted as it is.

A trace holds the experts that one layer chose for each token of some texts, in order. Steps are
made of it by cutting out neighbouring tokens of different texts, as an engine batches sequences.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capplan.physics.experts import Routing, popular_routing
from capplan.physics.overlaps import routing_by_lag
from capplan.physics.surface import Array

Choices = NDArray[np.int64]
"""Experts of each token. [texts, tokens, experts_per_token]"""


def popularity(choices: Choices, experts: int) -> Array:
    """Share of all tokens that choose each expert. [experts]."""
    texts, tokens, _ = choices.shape
    return np.asarray(np.bincount(choices.ravel(), minlength=experts) / (texts * tokens))


def overlap_across(choices: Choices, experts: int) -> float:
    """Share of a token's experts that a token of another text chooses too."""
    texts, tokens, chosen = choices.shape
    counts = _chosen(choices, experts).sum(axis=1).astype(float)
    both = (counts.sum(axis=0) ** 2 - (counts**2).sum(axis=0)).sum()
    return float(both / (texts * (texts - 1) * tokens**2 * chosen))


def overlap_by_lag(choices: Choices, experts: int, lags: int) -> Array:
    """Share of a token's experts that the token 1, 2, … further on chooses too. [lags]."""
    chosen = _chosen(choices, experts)
    pairs = [
        np.einsum("stx,stx->st", chosen[:, lag:], chosen[:, :-lag], dtype=np.int64).mean()
        for lag in range(1, lags + 1)
    ]
    return np.asarray(np.array(pairs) / choices.shape[2])


def resampled_distinct(
    choices: Choices, batch: ArrayLike, query_tokens: ArrayLike, draws: int = 200, seed: int = 0
) -> Array:
    """Distinct experts of steps cut out of the trace.

    Args:
        choices: The trace.
        batch: Texts of a step, no more than there are.
        query_tokens: Neighbouring tokens of each.
        draws: Steps that each mean is taken over.
        seed: Of which texts and where.

    Returns:
        Mean count, shape of batch and query_tokens broadcast.
    """
    texts, tokens, _ = choices.shape
    draw = np.random.default_rng(seed)

    def mean(sequences: int, width: int) -> float:
        counts = []
        for _ in range(draws):
            taken = draw.choice(texts, sequences, replace=False)
            first = draw.integers(0, tokens - width + 1, sequences)
            window = first[:, None] + np.arange(width)
            counts.append(len(np.unique(choices[taken[:, None], window])))
        return float(np.mean(counts))

    return np.asarray(np.vectorize(mean, otypes=[float])(batch, query_tokens))


def traced_routing(choices: Choices, experts: int, lags: int) -> Routing:
    """The routing that a trace shows, for steps of up to `lags` + 1 tokens a sequence.

    Popularity is taken expert by expert: a beta distribution of the same overlap touched
    6 per cent fewer experts of a large batch in a made trace.
    """
    overlaps = overlap_by_lag(choices, experts, lags)
    popular = popular_routing(popularity(choices, experts))
    faded = routing_by_lag(experts, choices.shape[2], popular.across, overlaps)
    return replace(faded, popularity=popular.popularity)


def _chosen(choices: Choices, experts: int) -> NDArray[np.bool_]:
    """Whether a token chose an expert. [texts, tokens, experts]."""
    texts, tokens, _ = choices.shape
    chosen = np.zeros((texts, tokens, experts), dtype=bool)
    np.put_along_axis(chosen, choices, values=True, axis=2)
    return chosen
