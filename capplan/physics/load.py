"""What one step is asked to do."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.surface import Array


@dataclass(frozen=True)
class Load:
    """Work of one step; arrays of one shape."""

    batch: Array
    """Sequences that decode or are verified; 0 in a step of prefill alone."""
    query_tokens: Array
    """Tokens of each: 1 in decode, draft_tokens + 1 in verification."""
    context_tokens: Array
    """Cached tokens of each, the mean over the batch."""
    prefill_tokens: Array
    """Tokens of the prefill chunk."""
    cached_tokens: Array
    """Tokens of the same prompt that stand in the cache already."""

    @property
    def decode_tokens(self) -> Array:
        """Tokens of the batch."""
        return np.asarray(self.batch * self.query_tokens)

    @property
    def tokens(self) -> Array:
        """All tokens that pass the layers."""
        return np.asarray(self.decode_tokens + self.prefill_tokens)

    @property
    def sampled_rows(self) -> Array:
        """Tokens whose logits are needed: the batch's, and the last of a chunk."""
        return np.asarray(self.decode_tokens + (self.prefill_tokens > 0))


def decode_load(
    batch: ArrayLike,
    context_tokens: ArrayLike,
    query_tokens: ArrayLike,
    prefill_tokens: ArrayLike = 0,
) -> Load:
    """A decoding or verifying batch, with or without a prefill chunk beside it."""
    return _load(batch, query_tokens, context_tokens, prefill_tokens, 0)


def prefill_load(tokens: ArrayLike, cached_tokens: ArrayLike) -> Load:
    """A prefill chunk alone."""
    return _load(0, 0, 0, tokens, cached_tokens)


def _load(*work: ArrayLike) -> Load:
    return Load(*(np.asarray(part, dtype=float) for part in np.broadcast_arrays(*work)))
