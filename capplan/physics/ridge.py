"""Where decoding turns from reading to computing.

A step reads each weight once and multiplies it with every token that meets it, so arithmetic
overtakes reading at a number of tokens that only the weight's width and the GPU decide. A routed
expert meets experts_per_token / experts of them. The cache is each sequence's own: more sequences
bring more reading, and no batch helps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capplan.physics.experts import distinct_experts, independent_routing

MOST_TOKENS: Final = 2**24


@dataclass(frozen=True)
class Weights:
    """Matrices that a step reads, on all GPUs together."""

    stored_bytes: float
    """Copies counted each. [bytes]"""
    flop_per_token: float
    """[FLOP/token]."""
    flop_per_s: float
    """Of one GPU, as the bandwidth is."""
    experts: int = 1
    experts_per_token: int = 1

    def read_bytes(self, tokens: float) -> float:
        """Bytes that a step of so many tokens reads [bytes]; experts are chosen independently."""
        if self.experts == 1:
            return self.stored_bytes
        routing = independent_routing(self.experts, self.experts_per_token)
        return self.stored_bytes * float(distinct_experts(routing, tokens, 1)) / self.experts


@dataclass(frozen=True)
class PerSequence:
    """What every sequence adds to a step, on all GPUs together."""

    read_bytes: float = 0.0
    flop_per_token: float = 0.0
    """[FLOP/token]."""
    flop_per_s: float = 1.0
    """Of one GPU."""


def ridge_batch(
    weights: Sequence[Weights],
    bandwidth_bytes_per_s: float,
    query_tokens: int = 1,
    sequence: PerSequence | None = None,
) -> float | None:
    """Fewest sequences with which arithmetic takes as long as reading.

    Args:
        weights: The matrices.
        bandwidth_bytes_per_s: Of one GPU.
        query_tokens: Tokens of a sequence in a step.
        sequence: Its cache; None to leave it out.

    Returns:
        The batch, not rounded; None where reading takes longer at every batch.

    Source:
        Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
    """
    own = sequence or PerSequence()

    def excess_s(batch: float) -> float:
        tokens = batch * query_tokens
        read = sum(one.read_bytes(tokens) for one in weights) + batch * own.read_bytes
        compute_s = sum(tokens * one.flop_per_token / one.flop_per_s for one in weights)
        compute_s += tokens * own.flop_per_token / own.flop_per_s
        return compute_s - read / bandwidth_bytes_per_s

    low, high = 0.0, 1.0
    while excess_s(high) < 0:
        low, high = high, 2 * high
        if high > MOST_TOKENS:
            return None
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if excess_s(middle) < 0 else (low, middle)
    return high
