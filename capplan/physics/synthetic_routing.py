"""Tokens per expert in the synthetic routings that NVIDIA's published MoE tables were timed with.

A table row says how many tokens entered the layer, not how many experts they touched. The
generator of the routing is public, so both can be drawn again: the counts of the GPU that was
timed, which is the most loaded one.

Source:
    `collector/helper.py` of github.com/ai-dynamo/aiconfigurator (Apache-2.0), read for what it
    draws; the tables are those of aiconfigurator-core 0.12.0.
"""

import math

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

_DRAWS = 40
"""The tables average five draws of each row; forty leave U uncertain by about one per cent."""


def routed_counts(
    distribution: str, tokens: int, experts: int, experts_per_token: int, ranks: int = 1
) -> Counts:
    """Tokens that each expert of the timed GPU gets.

    Args:
        distribution: "balanced", or "power_law_" and the exponent, such as "power_law_1.01".
        tokens: Tokens that enter the layer, over all ranks.
        experts: Routed experts of the layer, over all ranks.
        experts_per_token: Of them each token chooses.
        ranks: GPUs that share the experts out.

    Returns:
        Counts. [draws, experts / ranks]

    Raises:
        ValueError: The distribution is none of these.
    """
    if distribution == "balanced":
        counts = _balanced(tokens, experts, experts_per_token)[None, :]
        return counts[:, : experts // ranks]
    name, _, exponent = distribution.rpartition("_")
    if name != "power_law":
        raise ValueError(f"no generator is known for the routing {distribution}")
    return _power_law(float(exponent), tokens, (experts_per_token, experts, ranks))


def _balanced(tokens: int, experts: int, chosen: int) -> Counts:
    """Each token takes every stride-th expert; tokens start one after the other, spread out."""
    stride = math.ceil(experts / chosen)
    step = 1.0 if tokens >= stride else stride / tokens
    first = np.arange(tokens)[:, None] * step
    picked = ((first + np.arange(chosen) * stride) % experts).astype(np.int64)
    return np.bincount(picked.ravel(), minlength=experts)


def _power_law(exponent: float, tokens: int, layer: tuple[int, int, int]) -> Counts:
    """The most loaded rank of each draw: popularities, rounded to whole tokens and mended."""
    chosen, experts, ranks = layer
    low, high = (1.0, tokens * 0.8) if tokens * chosen > experts else (0.01, 2.0)
    power = 1 - exponent
    uniform = np.random.default_rng(0).random((_DRAWS, experts))
    popularity = (low**power + (high**power - low**power) * uniform) ** (1 / power)
    shares = popularity / popularity.sum(axis=1, keepdims=True) * (tokens * chosen)
    counts = np.minimum(np.rint(shares).astype(np.int64), tokens).reshape(_DRAWS, ranks, -1)
    # Rounding, and no expert being chosen twice by a token, leave some choices over or missing.
    while (missing := tokens * chosen - counts.sum(axis=(1, 2))).any():
        counts = np.minimum(_mended(counts, missing, tokens), tokens)
    return np.asarray(counts[np.arange(_DRAWS), counts.sum(axis=2).argmax(axis=1)])


def _mended(counts: Counts, missing: Counts, most: int) -> Counts:
    """Ranks in turn give their least used expert one more, or their most used one less."""
    sign = np.sign(missing)[:, None, None]
    able = np.where(sign > 0, counts < most, counts > 0).any(axis=2)
    turn = np.cumsum(able, axis=1)
    ranks = turn[:, -1:]
    times = able * ((np.abs(missing)[:, None] + ranks - turn) // ranks)
    return np.where(sign == 0, counts, sign * _raised(sign * counts, times))


def _raised(counts: Counts, times: Counts) -> Counts:
    """Raises the smallest count of each row by one, so many times.

    Args:
        counts: In any order. [..., n]
        times: Of each row. [...]

    Returns:
        The counts, in some other order. [..., n]
    """
    ordered = np.sort(counts, axis=-1)
    rank = np.arange(1, ordered.shape[-1] + 1)
    # What it takes to lift the first i up to the next one; they are lifted while there is enough.
    lift = rank[:-1] * ordered[..., 1:] - np.cumsum(ordered, axis=-1)[..., :-1]
    lifted = 1 + np.sum(lift <= times[..., None], axis=-1, keepdims=True)
    among = rank <= lifted
    total = np.sum(ordered, axis=-1, keepdims=True, where=among) + times[..., None]
    level = total // lifted + (rank <= total % lifted)
    return np.where(among, level, ordered)
