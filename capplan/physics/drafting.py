"""What a round of speculation costs, and when it pays.

A round drafts, then verifies: its time is the verification step of draft_tokens + 1 tokens a
sequence plus the drafting. Target efficiency is T(B, 1) / T(B, draft_tokens + 1), the time of a
decode step over the time of the verification step at the same batch.
"""

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.surface import Array


def round_s(step_s: ArrayLike, draft_s: ArrayLike) -> Array:
    """Time of one round [s]: verification step and drafting, one after the other."""
    return np.asarray(np.add(step_s, draft_s), dtype=float)


def plain_step_with_drafter_s(step_s: ArrayLike, loaded_idle_overhead: float) -> Array:
    """Time of a plain step [s] in an engine that has loaded a drafter and does not use it."""
    return np.asarray(step_s, dtype=float) * (1 + loaded_idle_overhead)


def target_efficiency(decode_s: ArrayLike, verify_s: ArrayLike) -> Array:
    """Decode step over verification step at the same batch and context.

    Source:
        Huang et al., "MoESD: Unveil Speculative Decoding's Potential for Accelerating Sparse
        MoE", 2025, section 3. arXiv:2505.19645. Their verification is of draft_tokens tokens,
        ours of draft_tokens + 1, as engines run it.
    """
    return np.asarray(np.divide(decode_s, verify_s))


def speed_up(decode_s: ArrayLike, round_s: ArrayLike, tokens_per_round: ArrayLike) -> Array:
    """Plain time a token over speculative time a token, at a fixed batch.

    >>> round(float(speed_up(decode_s=0.030, round_s=0.036, tokens_per_round=3.36)), 2)
    2.8
    """
    return np.asarray(np.divide(np.multiply(decode_s, tokens_per_round), round_s))


def break_even_tokens_per_round(decode_s: ArrayLike, round_s: ArrayLike) -> Array:
    """Tokens per round below which a round is slower a token than plain decoding."""
    return np.asarray(np.divide(round_s, decode_s))


def break_even_target_efficiency(
    decode_s: ArrayLike, draft_s: ArrayLike, tokens_per_round: ArrayLike
) -> Array:
    """Target efficiency below which speculation loses, at these tokens per round.

    From decode_s / efficiency + draft_s = tokens_per_round · decode_s. Infinite where drafting
    alone takes longer than decoding the tokens it wins.
    """
    left = np.asarray(np.multiply(tokens_per_round, decode_s) - draft_s, dtype=float)
    return np.asarray(np.divide(decode_s, left, out=np.full(left.shape, np.inf), where=left > 0))
