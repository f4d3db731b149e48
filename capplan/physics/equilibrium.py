"""The batch that a rate of requests settles at.

Steps run back to back. Requests arrive at a rate λ in every state; each needs K rounds of
decoding and steals ΔT of engine time for its prefill, so a round of length T0(B) stretches to
T = T0 / (1 − λ ΔT). Little's law, B = λ K T, then ties batch and rate. Solved for the rate, the
curve is explicit in the batch: no root is sought.

Source:
    The load-dependent batch under speculation is Kong et al., arXiv:2605.15051; the explicit form
    follows by eliminating T from the two relations above.
"""

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.surface import Array


def rate_per_s(
    batch: ArrayLike, rounds: ArrayLike, round_s: ArrayLike, prefill_s: ArrayLike
) -> Array:
    """Requests a second at which `batch` sequences decode on average.

    Args:
        batch: Mean sequences decoding, B.
        rounds: Rounds a request, K.
        round_s: Time of a round at that batch without prefill, T0(B). [s]
        prefill_s: Engine time that a request's prefill adds at that batch, ΔT(B). [s]

    Returns:
        λ = B / (K T0 + B ΔT). [1/s]

    >>> float(rate_per_s(batch=10, rounds=100, round_s=0.02, prefill_s=0.0))
    5.0
    """
    b = np.asarray(batch, dtype=float)
    return np.asarray(b / (np.asarray(rounds) * round_s + b * np.asarray(prefill_s)))


def stretched_round_s(round_s: ArrayLike, rate_per_s: ArrayLike, prefill_s: ArrayLike) -> Array:
    """Time of a round with the prefill of new requests mixed in: T0 / (1 − λ ΔT) [s].

    On the equilibrium curve λ ΔT stays below one by construction.
    """
    return np.asarray(round_s / (1 - np.multiply(rate_per_s, prefill_s)))
