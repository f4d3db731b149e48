"""From drafts kept, position by position, to tokens per round.

A round emits N tokens: one of the target's own (the bonus token) and the drafts kept before the
first miss. `shares[i]` is the part of rounds in which the draft at position i + 1 was kept, so
P(N > i + 1) = shares[i]. Nothing is extrapolated past the measured positions, and no constant
chance a token is assumed: published curves miss it by up to 59 % at seven drafts.
"""

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.surface import Array


def tokens_per_round(shares: ArrayLike) -> Array:
    r"""Mean tokens a round emits, by draft length.

    Args:
        shares: Part of rounds that keep position 1, 2, …, non-increasing. [..., positions]

    Returns:
        :math:`A(\gamma) = 1 + \sum_{i \le \gamma} c_i` for 0, 1, … positions drafts.
        [..., positions + 1], from 1 to positions + 1.

    Source:
        Identity for any chain of drafts; with shares a, a², … it is equation 1 of Leviathan,
        Kalman and Matias, "Fast Inference from Transformers via Speculative Decoding", 2023.

    >>> tokens_per_round([0.5, 0.25]).tolist()
    [1.0, 1.5, 1.75]
    """
    kept = np.asarray(shares, dtype=float)
    none = np.ones((*kept.shape[:-1], 1))
    return np.concatenate([none, 1 + np.cumsum(kept, axis=-1)], axis=-1)


def tokens_per_round_variance(shares: ArrayLike) -> Array:
    r"""Variance of the tokens of one round, by draft length.

    Args:
        shares: As in `tokens_per_round`. [..., positions]

    Returns:
        :math:`E[N^2] - A^2` with :math:`E[N^2] = 1 + \sum_i (2 i + 1) c_i`. [..., positions + 1]
    """
    kept = np.asarray(shares, dtype=float)
    positions = np.arange(1, kept.shape[-1] + 1)
    none = np.ones((*kept.shape[:-1], 1))
    second = np.concatenate([none, 1 + np.cumsum((2 * positions + 1) * kept, axis=-1)], axis=-1)
    # Rounding can leave a hair below nought where every round is alike.
    return np.maximum(second - tokens_per_round(kept) ** 2, 0.0)


def shifted_shares(shares: ArrayLike, shift: float) -> Array:
    """Shares of a request whose drafts are kept more or less readily than the mean.

    Args:
        shares: As in `tokens_per_round`. [positions]
        shift: Added to the chance that a draft is kept once all before it were, at every
            position; chances stay within 0 and 1.

    Returns:
        The shifted request's shares. [positions]
    """
    kept = np.asarray(shares, dtype=float)
    before = np.concatenate([[1.0], kept[:-1]])
    chance = np.divide(kept, before, out=np.zeros_like(kept), where=before > 0)
    return np.cumprod(np.clip(chance + shift, 0.0, 1.0))


def constant_chance(tokens_per_round: ArrayLike, draft_tokens: int) -> Array:
    r"""Chance of a draft to be kept, alike at every position, that brings these tokens a round.

    Says what would have to be reached, not what drafters do: theirs differs from one position to
    the next.

    Args:
        tokens_per_round: Tokens wanted. [...]
        draft_tokens: Drafts a round, one or more. [tokens]

    Returns:
        The root a of :math:`1 + a + \dots + a^\gamma = (1 - a^{\gamma + 1}) / (1 - a) = A`; 0 where
        one token is enough, NaN where draft_tokens + 1 are not. [...]

    Source:
        Inverse of equation 1 of Leviathan, Kalman and Matias, 2023.

    >>> constant_chance([1.5, 0.9, 2.1], draft_tokens=1).tolist()
    [0.5, 0.0, nan]
    """
    wanted = np.asarray(tokens_per_round, dtype=float)
    low, high = np.zeros_like(wanted), np.ones_like(wanted)
    # The sum rises with the chance: fifty halvings leave nothing of the bracket.
    for _ in range(50):
        middle = (low + high) / 2
        enough = np.polyval(np.ones(draft_tokens + 1), middle) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    known = np.where(wanted <= draft_tokens + 1, high, np.nan)
    return np.where(wanted <= 1, 0.0, known)


def mixed_tokens_per_round(tokens: ArrayLike, rounds: ArrayLike) -> Array:
    """Tokens per round of a mix: slow classes hold more rounds, so the mean is harmonic.

    Args:
        tokens: Output tokens of each class. [..., classes]
        rounds: Rounds that they took. [..., classes]

    Returns:
        Tokens over rounds; 1 where there are no rounds. [...]
    """
    total = np.asarray(np.sum(rounds, axis=-1), dtype=float)
    emitted = np.asarray(np.sum(tokens, axis=-1), dtype=float)
    return np.asarray(np.divide(emitted, total, out=np.ones_like(total), where=total > 0))
