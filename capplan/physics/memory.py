"""How many sequences fit beside the weights.

The sequences in a batch are length-biased: long answers stay longer, so the batch holds more
context than the average request does.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.surface import Array

SAFE_DEVIATIONS = 2.33
"""One-sided 99 % of a normal: the cache overflows in one moment of a hundred."""

UTILISATION = 0.90
"""Part of a GPU's memory that engines take, by default."""
RESERVE_BYTES = 3.5 * 2**30 + 392 * 2**20
"""Of it for activations and communication, a GPU: a planning figure of NVIDIA's
(aiconfigurator-core 0.12.0, systems/h200_sxm.yaml), no measurement."""


@dataclass(frozen=True)
class Resident:
    """Context of a sequence that is decoding, seen at a random moment."""

    mean_tokens: float
    variance: float


def resident(prompt_tokens: Array, decode_tokens: Array, weights: Array) -> Resident:
    r"""Context of a decoding sequence at a random moment.

    With answers of length L drawn independently of prompts, a sequence found decoding has
    length-biased L and a position uniform in it: mean :math:`E[L^2] / 2 E[L]`, second moment
    :math:`E[L^3] / 3 E[L]` (the renewal inspection paradox).

    Args:
        prompt_tokens: Quantiles of the whole prompt, cached or not. [nodes]
        decode_tokens: Quantiles of the tokens after the first. [nodes]
        weights: Probability of each node. [nodes]
    """
    prompt_mean = float(weights @ prompt_tokens)
    prompt_variance = float(weights @ prompt_tokens**2) - prompt_mean**2
    first = float(weights @ decode_tokens)
    if first == 0:
        return Resident(prompt_mean, prompt_variance)
    position = float(weights @ decode_tokens**2) / (2 * first)
    position_variance = float(weights @ decode_tokens**3) / (3 * first) - position**2
    return Resident(prompt_mean + position, prompt_variance + position_variance)


def kv_tokens_beside_drafter(
    kv_capacity_tokens: float,
    kv_bytes_per_token: float,
    drafter_memory_bytes: float,
    drafter_kv_bytes_per_token: float,
) -> float:
    """Tokens of context that fit once a drafter and its own cache are loaded.

    Never negative: zero says that the drafter leaves no room.
    """
    free_bytes = kv_capacity_tokens * kv_bytes_per_token - drafter_memory_bytes
    return max(0.0, free_bytes / (kv_bytes_per_token + drafter_kv_bytes_per_token))


def batch_that_fits(
    capacity_tokens: ArrayLike, mean_tokens: ArrayLike, variance: ArrayLike
) -> Array:
    r"""Largest batch whose context overflows the cache in at most one moment of a hundred.

    Solves :math:`n \bar c + z \sigma \sqrt n \le M` for n.

    Args:
        capacity_tokens: Tokens that the cache holds, M. [tokens]
        mean_tokens: Mean context of a resident sequence with its look-ahead slots. [tokens]
        variance: Of the same. [tokens²]

    Returns:
        The batch, not rounded.
    """
    mean = np.asarray(mean_tokens, dtype=float)
    deviation = SAFE_DEVIATIONS * np.sqrt(variance)
    root = (
        np.sqrt(deviation**2 + 4 * mean * np.asarray(capacity_tokens, dtype=float)) - deviation
    ) / (2 * mean)
    return np.asarray(root**2)


def held_by_one(mean_tokens: ArrayLike, variance: ArrayLike) -> Array:
    """Tokens of cache that one sequence needs so that it overflows once in a hundred moments."""
    return np.asarray(np.asarray(mean_tokens) + SAFE_DEVIATIONS * np.sqrt(variance))


def usable_bytes(gpu_memory_bytes: float) -> float:
    """What one GPU has for weights, drafter and caches [bytes]."""
    return max(0.0, UTILISATION * gpu_memory_bytes - RESERVE_BYTES)


def weights_fit(weights_bytes: float, gpus: int, gpu_memory_bytes: float) -> bool:
    """Whether a replica's weights fit its GPUs at all."""
    return weights_bytes < gpus * gpu_memory_bytes


def gpus_for_weights(weights_bytes: float, gpu_memory_bytes: float) -> int:
    """Fewest GPUs that hold the weights, before any cache."""
    return math.floor(weights_bytes / gpu_memory_bytes) + 1
