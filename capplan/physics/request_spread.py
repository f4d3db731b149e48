"""How far requests differ in acceptance, from the counts of each: spread and intervals.

A request's draft is tested where all drafts before it were kept, so position i + 1 has as many
trials as position i had kept drafts; the first has one a round, drafted or not. Rounds of one
request are alike, so requests, not rounds or tokens, are what was sampled.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.surface import Array

RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """Where shares by position may lie. [positions]."""

    low: Array
    high: Array


def per_request_sd(rounds: ArrayLike, accepted: ArrayLike) -> float:
    """Standard deviation between requests of the chance that a draft is kept.

    The chance at a position is taken to be the pooled one plus a shift of the request's own, alike
    at every position, as in `acceptance.shifted_shares`. Requests' means scatter by their own
    shifts and by the luck of their counts; the analysis of variance takes the second out.

    Args:
        rounds: Of each request. [requests]
        accepted: Rounds of each request that kept position 1, 2, …. [requests, positions]

    Returns:
        0 where the scatter is no larger than luck alone makes it, and no more than chances of
        nought and one would scatter. A wide spread comes out low, 0.15
        by 8 %: late positions are tested more often in requests that keep more.

    Raises:
        ValueError: Fewer than two requests.

    Source:
        Kleinman, "Proportions with extraneous variance", JASA 68 (1973), 46-54: the moment
        estimator with weights by size; chances differ by position here, so deviations are taken
        from what the pooled chances expect of each request.
    """
    counts = np.asarray(accepted, dtype=float)
    if len(counts) < 2:
        raise ValueError("the spread between requests needs two of them")
    trials = np.concatenate([np.asarray(rounds, dtype=float)[:, None], counts[:, :-1]], axis=1)
    tested = trials.sum(axis=0)
    chance = np.divide(counts.sum(axis=0), tested, out=np.zeros_like(tested), where=tested > 0)
    size = trials.sum(axis=1)
    excess = counts.sum(axis=1) - trials @ chance
    between = float(np.sum(excess**2 / size))
    luck = float(tested @ (chance * (1 - chance)) / size.sum())
    degrees = len(size) - 1
    weight = float(size.sum() - np.sum(size**2) / size.sum()) - degrees
    variance = (between - degrees * luck) / weight if weight > 0 else 0.0
    # No chance lies outside 0 and 1, which bounds how far they can scatter about their mean.
    return float(np.sqrt(np.clip(variance, 0.0, luck)))


def bootstrap_shares(
    rounds: ArrayLike, accepted: ArrayLike, seed: int, confidence: float = 0.95
) -> Interval:
    """Interval of the shares by position, had other prompts of the same kind been drawn.

    Args:
        rounds: Of each request. [requests]
        accepted: Rounds of each request that kept position 1, 2, …. [requests, positions]
        seed: Of the draws.
        confidence: Part of such intervals that hold the truth, with many requests; with few they
            are too narrow.

    Source:
        Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13: percentiles of
        statistics of requests drawn with replacement.
    """
    sizes, counts = np.asarray(rounds, dtype=float), np.asarray(accepted, dtype=float)
    drawn = np.random.default_rng(seed).multinomial(
        len(sizes), np.full(len(sizes), 1 / len(sizes)), size=RESAMPLES
    )
    shares = (drawn @ counts) / (drawn @ sizes)[:, None]
    tail = (1 - confidence) / 2
    low, high = np.quantile(shares, [tail, 1 - tail], axis=0)
    return Interval(low, high)
