"""Where a profile is tabulated: rectangles that a plan interpolates on."""

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from capplan.composer.composed import Composed
from capplan.composer.reading import times_s
from capplan.physics.load import decode_load

MOST_BATCH: Final = 512
"""Of one copy of attention."""
FEWEST_BATCH: Final = 8
SHORT_CONTEXT: Final = 1024
"""Tokens of a short sequence: memory holds no larger batch than of these."""
CLIFF: Final = 0.02
"""Part by which one token more must lengthen a step for both sides to be tabulated."""
TILES: Final = (16, 32, 64, 128, 256, 512, 1024, 2048)
CHUNKS: Final = (64, 256, 1024, 2048, 8192)
MIXED_CONTEXT: Final = 4096
CACHED: Final = (0, 8192, 32768, 131072)
MAX_BATCHED_TOKENS: Final = 8192


@dataclass(frozen=True)
class Grid:
    """The axes of all tables."""

    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    query_tokens: tuple[int, ...]
    mixed_contexts: tuple[int, ...]
    mixed_query_tokens: tuple[int, ...]
    chunks: tuple[int, ...]
    prefill_tokens: tuple[int, ...]
    cached_tokens: tuple[int, ...]

    @property
    def doubled_batches(self) -> tuple[int, ...]:
        """Powers of two: what drafting and chunks add has no cliffs that matter to a plan."""
        return doubled(self.batches[-1])


def grid_of(composed: Composed, capacity_tokens: float, draft_tokens: int, *, coarse: bool) -> Grid:
    """The axes for a deployment.

    Args:
        composed: Its step times.
        capacity_tokens: What its cache holds.
        draft_tokens: Most drafts that a step verifies; 0 for decoding alone.
        coarse: Powers of two and three contexts only.
    """
    query_tokens = tuple(range(1, draft_tokens + 2))
    largest = _largest(capacity_tokens, composed.asked.split.copies)
    edges = () if coarse else cliffs(composed)
    batches = sorted({*doubled(largest), *_beside(edges, query_tokens, largest)})
    most = min(composed.asked.model.context_limit or CACHED[-1], CACHED[-1])
    contexts = (1024, 16384) if coarse else (1024, 4096, 16384, 65536)
    return Grid(
        batches=tuple(batches),
        contexts=(*(one for one in contexts if one < most), most),
        query_tokens=query_tokens,
        mixed_contexts=(min(MIXED_CONTEXT, most),),
        mixed_query_tokens=_mixed_queries(composed, query_tokens, largest),
        chunks=(256, 2048, 8192) if coarse else CHUNKS,
        prefill_tokens=CHUNKS,
        cached_tokens=(*(one for one in CACHED if one < most), most),
    )


def _mixed_queries(
    composed: Composed, query_tokens: tuple[int, ...], largest: int
) -> tuple[int, ...]:
    """A few widths between which chunks are read; all where the operator tables end early."""
    ends = decode_load(largest, SHORT_CONTEXT, np.array(query_tokens), MAX_BATCHED_TOKENS)
    if np.isnan(times_s(composed, ends)).any():
        return query_tokens
    return tuple(query for query in query_tokens if query in {1, 2, 4, query_tokens[-1]})


def cliffs(composed: Composed) -> tuple[int, ...]:
    """Tokens of a step past which one more lengthens it by a jump: edges of kernels' tiles."""
    edges = np.array(TILES)
    full, over = (times_s(composed, decode_load(edges + more, SHORT_CONTEXT, 1)) for more in (0, 1))
    return tuple(int(edge) for edge in edges[over / full - 1 > CLIFF])


def doubled(largest: int) -> tuple[int, ...]:
    """Powers of two up to a power of two."""
    return tuple(2**power for power in range(largest.bit_length()))


def _beside(edges: tuple[int, ...], query_tokens: tuple[int, ...], largest: int) -> set[int]:
    """Batches on both sides of every edge, however many tokens a sequence brings."""
    last = {edge // query for edge, query in product(edges, query_tokens)}
    return {batch for one in last for batch in (one, one + 1) if 1 <= batch <= largest}


def _largest(capacity_tokens: float, copies: int) -> int:
    """The power of two at or above what memory holds of short sequences, within bounds."""
    held = max(capacity_tokens / SHORT_CONTEXT, 1)
    return int(min(MOST_BATCH * copies, max(FEWEST_BATCH, 2 ** np.ceil(np.log2(held)))))
