"""Attention of one layer on one GPU: decode, verification and prefill."""

from dataclasses import dataclass

import numpy as np

from capplan.physics.load import Load
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array
from capplan.records.caveat import Source


@dataclass(frozen=True)
class Attention:
    """Times of an attention kernel or module.

    Reading the cache costs `kv_s` a token of context and sequence, whatever the query tokens, until
    the query rows make it compute-bound: one row for each query head that shares a key, times the
    query tokens, padded to the tile. With grouped queries (few heads a key) that never comes; with
    latent attention all heads of the GPU share one key.

    Source:
        The form follows NVIDIA's silicon tables (aiconfigurator-core 0.12.0, Apache-2.0): latency
        is linear in batch · context, with equal slopes for 8 to 64 rows and 1.5 times that for 128.
    """

    base: Curve
    """At no context."""
    base_by_token: bool
    """`base` counts tokens (a module with its projections) or sequences (the kernel alone)."""
    rows_per_token: int
    """Query heads that share one key on this GPU."""
    tile_rows: int
    kv_s: float
    """Reading one cached token of one sequence. [s/token]"""
    row_kv_s: float
    """Arithmetic of one query row with one cached token. [s/token]"""
    lone_kv_s: float
    """The same when the context alone is too little parallel work to fill the GPU. [s/token]"""
    prefill_token_s: float
    """Work beside the attention proper, such as projections, a prefill token. [s/token]"""
    prefill_pair_s: float
    """One prefill token with one token it attends to. [s]"""
    cached_s: float
    """Reading, or expanding, a token that the prefill finds in the cache. [s/token]"""
    sources: tuple[Source, ...]
    """Of the base."""
    decode_sources: tuple[Source, ...] = ()
    """Of what decoding and verification add to it."""
    prefill_sources: tuple[Source, ...] = ()
    """Of what prefill adds to it."""
    cached_sources: tuple[Source, ...] = ()
    """Of what prefill adds when it finds tokens in the cache."""

    def at(self, load: Load) -> Array:
        """Time of one layer's attention [s], shape of the load."""
        decoding = load.decode_tokens if self.base_by_token else load.batch
        base_s = self.base.at(np.maximum(decoding, 1))
        return np.asarray(base_s + self._cache_s(load) + self._prefill_s(load))

    def _cache_s(self, load: Load) -> Array:
        rows = self.rows_per_token * load.query_tokens
        padded = np.ceil(rows / self.tile_rows) * self.tile_rows
        token_s = np.maximum(self.kv_s, padded * self.row_kv_s)
        alone_s = load.context_tokens * self.lone_kv_s * (load.batch > 0)
        return np.asarray(np.maximum(load.batch * load.context_tokens * token_s, alone_s))

    def _prefill_s(self, load: Load) -> Array:
        tokens = load.prefill_tokens
        pairs = tokens * load.cached_tokens + tokens**2 / 2
        cached = np.where(tokens > 0, load.cached_tokens, 0)
        return np.asarray(
            tokens * self.prefill_token_s + pairs * self.prefill_pair_s + cached * self.cached_s
        )
