"""How alike tokens choose experts, from the choices themselves.

Choices of a sequence are an array of expert numbers, [tokens, layers, experts_per_token]. Overlap
is the part of one token's experts that another token chose too, the quantity that
`experts.Routing` takes; all means here weigh pairs of tokens alike.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from capplan.physics.experts import Routing, distinct_experts
from capplan.physics.surface import Array

Choices = NDArray[np.int64]
DRAWS = 200
"""Steps that are put together at random to see what a batch touches."""


def popularity(sequences: Sequence[Choices], experts: int) -> Array:
    """Part of the tokens that choose each expert. [layers, experts]."""
    counts = sum(_counts(choices, experts) for choices in sequences)
    return np.asarray(counts / sum(len(choices) for choices in sequences))


def overlap_across(sequences: Sequence[Choices], experts: int) -> Array:
    """Overlap of tokens of different sequences. [layers].

    Every pair of tokens that stand in different sequences counts once: the square of the summed
    counts less the squares of each sequence's own.
    """
    counts = np.array([_counts(choices, experts) for choices in sequences], dtype=float)
    tokens = np.array([len(choices) for choices in sequences], dtype=float)
    shared = np.square(counts.sum(axis=0)).sum(axis=-1) - np.square(counts).sum(axis=(0, -1))
    pairs = tokens.sum() ** 2 - np.square(tokens).sum()
    return np.asarray(shared / (pairs * sequences[0].shape[2]))


def overlap_between(one: Array, other: Array, experts_per_token: int) -> Array:
    """Overlap of a token of one workload with one of another, from their popularity. [layers]."""
    return np.asarray((one * other).sum(axis=-1) / experts_per_token)


def overlap_at_lags(sequences: Sequence[Choices], experts: int, lags: int) -> Array:
    """Overlap of two tokens of one sequence, 1 to `lags` places apart. [lags, layers].

    Raises:
        ValueError: No sequence has tokens so far apart.
    """
    layers, chosen = sequences[0].shape[1:]
    shared, pairs = np.zeros((lags, layers)), np.zeros(lags)
    for choices in sequences:
        member = _membership(choices, experts)
        for lag in range(1, min(lags, len(choices) - 1) + 1):
            shared[lag - 1] += (member[lag:] & member[:-lag]).sum(axis=(0, 2))
            pairs[lag - 1] += len(choices) - lag
    if not pairs.all():
        raise ValueError(f"no sequence has tokens {lags} places apart")
    return np.asarray(shared / (pairs[:, None] * chosen))


def distinct_of_neighbours(sequences: Sequence[Choices], experts: int, most: int) -> Array:
    """Distinct experts of 1 to `most` neighbouring tokens of one sequence. [most, layers].

    Raises:
        ValueError: No sequence has so many tokens.
    """
    layers = sequences[0].shape[1]
    found, windows = np.zeros((most, layers)), np.zeros(most)
    for choices in sequences:
        member = _membership(choices, experts)
        seen = member
        for width in range(1, min(most, len(choices)) + 1):
            seen = member if width == 1 else seen[:-1] | member[width - 1 :]
            found[width - 1] += seen.sum(axis=(0, 2))
            windows[width - 1] += len(seen)
    if not windows.all():
        raise ValueError(f"no sequence has {most} tokens")
    return np.asarray(found / windows[:, None])


def distinct_of_batch(
    sequences: Sequence[Choices], experts: int, batch: int, query_tokens: int, seed: int
) -> Array:
    """Distinct experts of a step over neighbouring tokens of different sequences. [layers].

    Args:
        sequences: At least `batch` of them with `query_tokens` tokens.
        experts: Of a layer.
        batch: Sequences of the step, drawn without replacement.
        query_tokens: Neighbouring tokens of each, at a place drawn at random. [tokens]
        seed: Of the draws.
    """
    rng = np.random.default_rng(seed)
    long = [choices for choices in sequences if len(choices) >= query_tokens]
    total = np.zeros(sequences[0].shape[1])
    for _ in range(DRAWS):
        taken = rng.choice(len(long), size=batch, replace=False)
        starts = [int(rng.integers(len(long[place]) - query_tokens + 1)) for place in taken]
        step = np.concatenate(
            [
                long[place][start : start + query_tokens]
                for place, start in zip(taken, starts, strict=True)
            ]
        )
        total += _membership(step, experts).any(axis=0).sum(axis=-1)
    return total / DRAWS


def within(overlap: Sequence[float], query_tokens: int) -> float:
    """Mean overlap of all pairs among neighbouring tokens.

    Args:
        overlap: At lag 1, 2, …; at least query_tokens − 1 of them, and one.
        query_tokens: How many neighbours; one has no pair and takes lag 1.
    """
    lags = np.arange(1, max(query_tokens, 2))
    weights = np.maximum(query_tokens - lags, 1)
    return float(weights @ np.asarray(overlap)[: len(lags)] / weights.sum())


def predicted(
    experts: tuple[int, int], across: float, overlap: Sequence[float], step: tuple[int, int]
) -> float:
    """What the two-level formula makes of measured overlaps.

    Args:
        experts: Of a layer, and of a token.
        across: Overlap of different sequences; below independence it is noise, and raised to it.
        overlap: At lags of one sequence.
        step: batch and query_tokens.

    Source:
        `experts.distinct_experts`, with the overlap of all pairs in the window.
    """
    total, chosen = experts
    batch, query_tokens = step
    popular = max(across, chosen / total)
    alike = min(max(within(overlap, query_tokens), popular), 1 - 1e-9)
    routing = Routing(total, chosen, across=min(popular, alike), within=alike)
    return float(distinct_experts(routing, batch, query_tokens))


def _membership(choices: Choices, experts: int) -> NDArray[np.bool_]:
    """Whether a token chose an expert. [tokens, layers, experts]."""
    member = np.zeros((*choices.shape[:2], experts), dtype=bool)
    np.put_along_axis(member, choices, values=True, axis=2)
    return member


def _counts(choices: Choices, experts: int) -> NDArray[np.int64]:
    """Tokens that chose each expert. [layers, experts]."""
    return np.asarray(_membership(choices, experts).sum(axis=0))
