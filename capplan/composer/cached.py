"""Kernels that read a cache, as surfaces over sequences and cached tokens."""

from typing import Final

import numpy as np

from capplan.physics.operators import Table
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array, Surface
from capplan.records.caveat import Caveat


def cache_surface(table: Table) -> Surface:
    """Time by sequences and cached tokens, with the holes of the table filled.

    Tables end where sequences times tokens would not fit. The kernel is straight in that product,
    so that corner is filled along the last slope of each row; nothing beyond either axis is.
    """
    (batches, steps), times = table.grid("batch_size", "step")
    return Surface((batches, steps + 1), filled(times, steps + 1))


def rows_surface(table: Table) -> Surface:
    """The same by heads, sequences and cached tokens."""
    (heads, batches, steps), times = table.grid("num_heads", "batch_size", "step")
    return Surface((heads, batches, steps + 1), filled(times, steps + 1))


def chunk_surface(table: Table) -> Surface:
    """Time of a prefill chunk by its tokens and those it finds in the cache."""
    (chunks, cached), times = table.grid("isl", "step")
    return Surface((chunks, cached), filled(times, cached))


def filled(times: Array, along: Array) -> Array:
    """Holes filled along the last axis.

    Straight lines between known times; the first of them before, the last slope after.
    """
    for row in times.reshape(-1, along.size):
        known = np.flatnonzero(np.isfinite(row))
        if known.size < 2:
            continue
        last, before = known[-1], known[-2]
        slope = (row[last] - row[before]) / (along[last] - along[before])
        beyond = np.maximum(along - along[last], 0.0)
        inside = np.interp(along, along[known], row[known])
        row[:] = np.where(np.isfinite(row), row, inside + max(slope, 0.0) * beyond)
    return times


CORNER: Final = Caveat(
    about="attention",
    text=(
        "Tables of attention end near a million cached tokens; beyond, time is drawn out along "
        "their last slope, straight in sequences times tokens."
    ),
)


def pair_s(chunk: Curve, window: int | None = None) -> float:
    """Seconds of one query token with one key, from the longest chunks, where arithmetic binds."""
    sizes, times = np.array(chunk.sizes[-2:]), np.array(chunk.times_s[-2:])
    seen = np.minimum(sizes, window or np.inf)
    pairs = sizes * seen - seen**2 / 2
    return float(np.diff(times)[0] / np.diff(pairs)[0])


def chunk_s(chunk: Curve, tokens: Array, cached: Array, pair: float) -> Array:
    """Time of a prefill chunk [s]; 0 without one, NaN where it is longer than any measured."""
    first, last = chunk.sizes[0], chunk.sizes[-1]
    new_s = chunk.at(np.clip(tokens, first, last))
    time_s = np.where(tokens > 0, new_s + tokens * cached * pair, 0.0)
    return np.where(tokens > last, np.nan, time_s)
