"""Grouped-query attention: the kernel that reads the cache, and the one that fills it.

Decode reads the whole cache of a sequence once, whatever the query tokens (physics/attention.py):
verification costs the same until arithmetic binds, whose rate is read off prefill, where it does.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from capplan.composer.cached import cache_surface, chunk_s, pair_s
from capplan.composer.refusals import Refused
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array, Surface
from capplan.records.architecture import Gqa
from capplan.records.caveat import Source

CACHES: Final = {"bf16": "bfloat16", "fp8": "fp8"}
"""Precisions of caches by the tables' names."""


@dataclass(frozen=True)
class GroupedAttention:
    """Kernels of one layer on one GPU."""

    decode: Surface
    """By sequences and cached tokens."""
    prefill: Curve
    """By tokens of a chunk that begins its prompt."""
    pair_s: float
    """One query token with one cached token where arithmetic binds. [s]"""
    window_tokens: float
    """Latest tokens that are attended to; infinite for all."""
    sources: tuple[Source, ...]

    def at(self, load: Load) -> Array:
        """Time of one layer [s], shape of the load; NaN outside the tables."""
        cached = np.minimum(load.cached_tokens, self.window_tokens)
        prefill_s = chunk_s(self.prefill, load.prefill_tokens, cached, self.pair_s)
        return np.asarray(self._decode_s(load) + prefill_s)

    def _decode_s(self, load: Load) -> Array:
        context = self.decode.clamped(1, load.context_tokens)
        read_s = self.decode.at(self.decode.clamped(0, load.batch), context)
        attended = np.minimum(load.context_tokens, self.window_tokens)
        arithmetic_s = load.decode_tokens * attended * self.pair_s
        return np.where(load.batch > 0, np.maximum(read_s, arithmetic_s), 0.0)


@lru_cache(maxsize=64)
def grouped_attention(tables: Silicon, shape: Gqa, cache: str) -> GroupedAttention:
    """Reads the kernels of one GPU's share of a layer.

    Raises:
        Refused: The tables do not hold such heads, or such a cache.
    """
    if shape.value_head_size not in {None, shape.head_size}:
        raise Refused("model", "attention with values unlike its keys has no table", "gqa")
    if shape.indexer is not None or shape.read_tokens is not None:
        raise Refused("model", "grouped attention that chooses what it reads is not composed")
    wanted: dict[str, Any] = {
        "num_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_size,
        "kv_cache_dtype": CACHES.get(cache),
        "window_size": shape.window_tokens or 0,
    }
    rows = ", ".join(f"{name}={value}" for name, value in wanted.items())
    decode = tables.find("generation_attention", **wanted)
    prefill = tables.find("context_attention", batch_size=1, **wanted)
    if decode is None or prefill is None:
        raise Refused("model", "attention has no table of these heads and this cache", rows)
    chunk = prefill.curve("isl", "prefill attention", rows)
    return GroupedAttention(
        decode=cache_surface(decode),
        prefill=chunk,
        pair_s=pair_s(chunk, shape.window_tokens),
        window_tokens=shape.window_tokens or np.inf,
        sources=(decode.said("decode attention", rows), chunk.source),
    )
