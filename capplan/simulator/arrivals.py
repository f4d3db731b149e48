"""When requests come, in units of the mean gap: divided by a rate these are seconds."""

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.surface import Array


def poisson(count: int, rng: np.random.Generator) -> Array:
    """Independent users: gaps are exponential. [count]."""
    return np.cumsum(rng.exponential(size=count))


def gamma(count: int, cv: float, rng: np.random.Generator) -> Array:
    """Gaps of a gamma distribution; a coefficient of variation above 1 is bursty. [count]."""
    shape = 1 / cv**2
    return np.cumsum(rng.gamma(shape, 1 / shape, size=count))


def modulated(
    count: int,
    peak_over_mean: float,
    peak_share: float,
    burst_requests: float,
    rng: np.random.Generator,
) -> Array:
    """A rate that jumps between two values, each held for an exponential time.

    Args:
        count: Requests.
        peak_over_mean: The higher rate over the mean, at least 1.
        peak_share: Part of the time at the higher rate; with it the higher rate must not bring
            more than all requests: peak_share · peak_over_mean ≤ 1.
        burst_requests: Mean requests in a stay at the higher rate.
        rng: Draws.

    Returns:
        Arrivals of mean rate 1. [count]

    Source:
        Markov-modulated Poisson process of two states: Fischer and Meier-Hellstern, Performance
        Evaluation 18, 1993. A Poisson process of rate 1 is drawn and its time is stretched.
    """
    assert 0 < peak_share < 1 <= peak_over_mean <= 1 / peak_share
    rates = np.array([peak_over_mean, (1 - peak_share * peak_over_mean) / (1 - peak_share)])
    stays = burst_requests / peak_over_mean * np.array([1.0, (1 - peak_share) / peak_share])
    marks = np.cumsum(rng.exponential(size=count))
    pairs = 1 + int(np.ceil(2 * marks[-1] / burst_requests))
    while True:
        # Peak and trough in turn; which comes first is drawn by share of time.
        order = np.array([0, 1]) if rng.random() < peak_share else np.array([1, 0])
        lasting = rng.exponential(np.tile(stays[order], pairs))
        expected = np.concatenate([[0.0], np.cumsum(lasting * np.tile(rates[order], pairs))])
        if expected[-1] >= marks[-1]:
            break
        pairs *= 2
    times = np.concatenate([[0.0], np.cumsum(lasting)])
    return np.asarray(np.interp(marks, expected, times))


def trace(times_s: ArrayLike) -> Array:
    """Recorded arrivals: sorted, the first at 0, the mean gap 1.

    Args:
        times_s: At least two different times. [requests]
    """
    times = np.sort(np.asarray(times_s, dtype=float))
    return np.asarray((times - times[0]) * (len(times) - 1) / (times[-1] - times[0]))
