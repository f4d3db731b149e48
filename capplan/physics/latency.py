"""Percentiles of what users wait for, modelled from means.

These stand in for a simulation of the load. They are approximations, and every number built on
them is marked *modelled*.
"""

from statistics import NormalDist

import numpy as np

from capplan.physics.surface import Array

_Z99 = NormalDist().inv_cdf(0.99)


def tpot_factor(
    percentile: float,
    load_factor: Array | float,
    luck_factor: Array | float,
    noise: Array | float,
) -> Array:
    """A percentile of time per output token over its mean.

    Three independent causes, taken as log-normal so that their logarithms add in squares: load
    that fluctuates, requests whose drafts are kept less often, and chance within one answer.

    Args:
        percentile: Such as 0.99.
        load_factor: 99th percentile over mean from load alone.
        luck_factor: Mean tokens per round over those of the request at the 1st percentile.
        noise: Standard deviation over mean of the time that one answer takes, by chance alone.

    Returns:
        The factor; 1 at the median.
    """
    spread = np.sqrt(
        np.log(load_factor) ** 2 + np.log(luck_factor) ** 2 + np.log1p(_Z99 * noise) ** 2
    )
    return np.asarray(np.exp(spread * NormalDist().inv_cdf(percentile) / _Z99))


def interference_variance(
    rate_per_s: Array, square_prefill_s2: Array, decode_s: Array, prefill_share: Array
) -> Array:
    """Variance over squared mean of an answer's time from the prompts that happen to fall into it.

    Prompts come as a Poisson process and each delays those who decode, who then meet more of them:
    a delay busy period, of mean L / (1 − r) and variance λ E[ΔT²] L / (1 − r)³.

    Args:
        rate_per_s: Requests, λ. [1/s]
        square_prefill_s2: Mean square of the engine time a prompt adds, E[ΔT²]. [s²]
        decode_s: Time of the answer's rounds without prompts, L. [s]
        prefill_share: Part of the engine's time that prompts take, r.

    Source:
        Conway, Maxwell and Miller, Theory of Scheduling, 1967, on delay cycles.
    """
    return np.asarray(rate_per_s * square_prefill_s2 / (decode_s * (1 - prefill_share)))


def queue_wait(
    percentile: float, utilisation: Array, service_s: Array, service_square_s2: Array
) -> tuple[Array, Array]:
    """Wait behind the prompts of others, as in an M/G/1 queue.

    Args:
        percentile: Such as 0.99.
        utilisation: Prefill work arriving over prefill work done.
        service_s: Mean time of a prompt. [s]
        service_square_s2: Mean square of it. [s²]

    Returns:
        Mean wait (Pollaczek-Khinchine) and its percentile from the exponential heavy-traffic tail,
        both infinite where utilisation reaches one. [s]
    """
    load = np.asarray(utilisation, dtype=float)
    # The wait of those who wait at all.
    waiting = np.divide(
        service_square_s2,
        2 * np.asarray(service_s) * (1 - load),
        out=np.full(np.broadcast_shapes(load.shape, np.shape(service_s)), np.inf),
        where=load < 1,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.log(load / (1 - percentile))
    tail = np.where(load < 1, waiting * np.maximum(above, 0.0), np.inf)
    return np.where(load < 1, load * waiting, np.inf), tail


def slot_wait(
    percentile: float,
    batch: Array,
    batch_limit: Array,
    elasticity: Array,
    spare_rate_per_s: Array,
) -> tuple[Array, Array]:
    """Wait for a free slot of the batch.

    The number in service is taken as normal with variance B / (1 − ε), ε being the elasticity of
    the round's time in the batch: the birth-death process near its balance. Who finds all slots
    taken waits an exponential time with the rate to spare, as in M/M/c.

    Args:
        percentile: Such as 0.99.
        batch: Mean sequences decoding.
        batch_limit: Most that may decode.
        elasticity: d ln T / d ln B, below one.
        spare_rate_per_s: Saturation rate minus arrival rate. [1/s]

    Returns:
        Mean wait and its percentile. [s]
    """
    mean = np.asarray(batch, dtype=float)
    deviation = np.sqrt(mean / np.maximum(1 - np.asarray(elasticity), 0.05))
    full = _normal_above((np.asarray(batch_limit) - mean) / np.maximum(deviation, 1e-9))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_wait = np.where(full < 1e-6, 0.0, full / spare_rate_per_s)
        above = np.log(full / (1 - percentile)) / spare_rate_per_s
    return mean_wait, np.where(full <= 1 - percentile, 0.0, above)


def _normal_above(z: Array) -> Array:
    """P(Z > z) by the logistic form of Bowling et al. (2009), within 1.4e-4.

    scipy's exact one costs a fifth of a second to import.
    """
    return np.asarray(1 / (1 + np.exp(np.clip(0.07056 * z**3 + 1.5976 * z, -500, 500))))


def combined(means_s: list[Array], percentiles_s: list[Array]) -> Array:
    """A percentile of a sum of independent delays from each part's mean and percentile [s].

    Means add; the distances from mean to percentile add in squares, each with its sign, since
    medians of skewed delays lie below their means. Exact for normal parts, and between the
    independent and the worst case for skewed ones.
    """
    mean = np.sum(np.broadcast_arrays(*means_s), axis=0)
    squares = []
    for part, tail in zip(means_s, percentiles_s, strict=True):
        # An endless mean is endless in the sum already; its distance would be inf − inf.
        distance = np.where(np.isinf(part), 0.0, tail - np.where(np.isinf(part), 0.0, part))
        squares.append(np.sign(distance) * distance**2)
    total = np.sum(np.broadcast_arrays(*squares), axis=0)
    return np.asarray(np.maximum(mean + np.sign(total) * np.sqrt(np.abs(total)), 0.0))


def amplified(values: Array, factor: Array | float) -> Array:
    """Values with what load adds multiplied: what they are at the first batch, alone, stays.

    Args:
        values: Batches along the last axis.
        factor: Broadcast against them.
    """
    alone = values[..., :1]
    with np.errstate(invalid="ignore"):  # endless waits have no difference
        return np.where(np.equal(factor, 1), values, alone + factor * (values - alone))
