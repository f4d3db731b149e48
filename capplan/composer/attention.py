"""Grouped-query attention: the kernel that reads the cache, and the one that fills it.

Decode reads the whole cache of a sequence once, whatever the query tokens (physics/attention.py):
verification costs the same until arithmetic binds, which is read off prefill, where it does.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from capplan.composer.refusals import Refused
from capplan.physics.load import Load
from capplan.physics.operators import Silicon, Table
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array, Surface
from capplan.records.architecture import Gqa
from capplan.records.caveat import Source

CACHES = {"bf16": "bfloat16", "fp8": "fp8"}


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
        return np.asarray(self._decode_s(load) + self._prefill_s(load))

    def _decode_s(self, load: Load) -> Array:
        context = np.maximum(load.context_tokens, self.decode.axes[1][0])
        read_s = self.decode.at(np.maximum(load.batch, 1), context)
        attended = np.minimum(load.context_tokens, self.window_tokens)
        arithmetic_s = load.decode_tokens * attended * self.pair_s
        return np.where(load.batch > 0, np.maximum(read_s, arithmetic_s), 0.0)

    def _prefill_s(self, load: Load) -> Array:
        tokens = load.prefill_tokens
        first, last = self.prefill.sizes[0], self.prefill.sizes[-1]
        new_s = self.prefill.at(np.clip(tokens, first, last))
        cached = np.minimum(load.cached_tokens, self.window_tokens)
        time_s = new_s + tokens * cached * self.pair_s
        return np.where(tokens > last, np.nan, np.where(tokens > 0, time_s, 0.0))


def grouped_attention(tables: Silicon, shape: Gqa, cache: str) -> GroupedAttention:
    """Reads the kernels of one GPU's share of a layer.

    Raises:
        Refused: The tables do not hold such heads, or such a cache.
    """
    return _read(tables, shape, cache)


@lru_cache(maxsize=64)
def _read(tables: Silicon, shape: Gqa, cache: str) -> GroupedAttention:
    if shape.value_head_size not in {None, shape.head_size}:
        raise Refused("model", "attention with values unlike keys has no table", "gqa")
    wanted = {
        "num_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_size,
        "kv_cache_dtype": CACHES.get(cache),
        "window_size": shape.window_tokens or 0,
    }
    rows = ", ".join(f"{name}={value}" for name, value in wanted.items())
    decode = tables.find("generation_attention", **wanted)
    prefill = tables.find("context_attention", **wanted)
    if decode is None or prefill is None:
        raise Refused("model", "attention has no table of these heads", rows)
    chunk = prefill.where(batch_size=1).curve("isl", "prefill attention", rows)
    return GroupedAttention(
        decode=cache_surface(decode),
        prefill=chunk,
        pair_s=pair_s(chunk, shape.window_tokens),
        window_tokens=shape.window_tokens or np.inf,
        sources=(decode.said("decode attention", rows), chunk.source),
    )


def cache_surface(table: Table) -> Surface:
    """Time by sequences and cached tokens, drawn out over the table's corner.

    Tables end where sequences times tokens would not fit. The kernel is straight in that product,
    so a hole is filled along the last slope of its row; nothing beyond either axis is.
    """
    (batches, steps), times = table.grid("batch_size", "step")
    contexts = steps + 1
    for row in times:
        known = np.flatnonzero(np.isfinite(row))
        if known.size < 2 or known.size == row.size:
            continue
        last, before = known[-1], known[-2]
        slope = (row[last] - row[before]) / (contexts[last] - contexts[before])
        beyond = np.arange(row.size) > last
        row[beyond] = row[last] + max(slope, 0.0) * (contexts[beyond] - contexts[last])
    return Surface((batches, contexts), times)


def pair_s(chunk: Curve, window: int | None = None) -> float:
    """Seconds of one query token with one key, from the longest chunks, where arithmetic binds."""
    sizes, times = np.array(chunk.sizes[-2:]), np.array(chunk.times_s[-2:])
    seen = np.minimum(sizes, window or np.inf)
    pairs = sizes * seen - seen**2 / 2
    return float(np.diff(times)[0] / np.diff(pairs)[0])
