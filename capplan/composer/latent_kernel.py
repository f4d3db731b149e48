"""The kernel of latent attention, or its module, read off the tables."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from capplan.composer.cached import chunk_s, pair_s, rows_surface
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array, Surface
from capplan.records.caveat import Source


@dataclass(frozen=True)
class LatentAttention:
    """Kernel or module of one layer on one GPU."""

    decode: Surface
    """By heads, sequences and cached tokens."""
    heads: int
    prefill: Curve
    """By tokens of a chunk that begins its prompt."""
    pair_s: float
    """One query token with one cached token where arithmetic binds. [s]"""
    whole: bool
    """The module with its projections, which every token passes."""
    sources: tuple[Source, ...]

    def at(self, load: Load) -> Array:
        """Time of one layer [s], shape of the load; NaN outside the tables."""
        prefill_s = chunk_s(self.prefill, load.prefill_tokens, load.cached_tokens, self.pair_s)
        decoding = load.batch > 0
        if self.whole:
            # What one token costs is paid once a step, by the batch where there is one.
            both = decoding & (load.prefill_tokens > 0)
            prefill_s = prefill_s - np.where(both, self.prefill.times_s[0], 0.0)
        return np.asarray(np.where(decoding, self._decode_s(load), 0.0) + prefill_s)

    def _decode_s(self, load: Load) -> Array:
        rows = self.heads * np.maximum(load.query_tokens, 1)
        if not self.whole:
            return self._read_s(rows, load.batch, load.context_tokens)
        start = self.decode.axes[2][0]
        # More tokens than were timed pass the projections in proportion.
        more = np.maximum(1, load.decode_tokens / self.decode.axes[1][-1])
        timed = self.decode.clamped(1, load.decode_tokens, above=True)
        projected = more * self._read_s(np.asarray(self.heads), timed, start)
        reading = self._read_s(rows, load.batch, load.context_tokens)
        return np.asarray(projected + reading - self._read_s(rows, load.batch, start))

    def _read_s(self, rows: Array, sequences: Array, context: Array | float) -> Array:
        """The table at these rows; beyond its most, time grows with them."""
        most = self.decode.axes[0][-1]
        time_s = self.decode.at(
            self.decode.clamped(0, rows, above=True),
            self.decode.clamped(1, sequences),
            self.decode.clamped(2, context),
        )
        return np.asarray(time_s * np.maximum(1, rows / most))


@lru_cache(maxsize=32)
def latent_attention(
    tables: Silicon,
    operators: tuple[str, str],
    heads: int,
    wanted: tuple[tuple[str, Any], ...],
) -> LatentAttention | None:
    """Reads one GPU's share of a layer; None where no table holds it.

    Args:
        tables: Of the GPU and the engine.
        operators: Names of the tables of decode and of prefill.
        heads: On one GPU.
        wanted: Values of columns.
    """
    decode = tables.find(operators[0], **dict(wanted))
    prefill = tables.find(operators[1], num_heads=heads, batch_size=1, **dict(wanted))
    if decode is None or prefill is None or heads not in decode.values("num_heads"):
        return None
    rows = ", ".join(f"{name}={value}" for name, value in wanted)
    chunk = prefill.curve("isl", "prefill attention", f"num_heads={heads}, {rows}")
    return LatentAttention(
        decode=rows_surface(decode),
        heads=heads,
        prefill=chunk,
        pair_s=pair_s(chunk),
        whole="module" in operators[0],
        sources=(decode.said("decode attention", rows), chunk.source),
    )
