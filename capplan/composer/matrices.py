"""Matrix products: weights of n × k against m tokens, from measured tables.

In m the table's own points stand close enough to keep the cliffs at tile edges. Widths between the
table's are interpolated, since at a fixed m the time grows straight in n and in k once a launch is
paid; how far that is off is measured on the nearest width of the table, read from its neighbours.

The fastest time that any engine's table holds counts. Engines call the same libraries, and some
tables hold more than the product: TensorRT-LLM's of fp8 and nvfp4 find scales first (7 µs, as its
own table of that shows), vLLM's of fp8 in blocks wait for the host (60 µs on Hopper, 180 on
Blackwell, whatever the size).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Final

import numpy as np

from capplan.composer.refusals import Refused
from capplan.composer.small import quantising
from capplan.composer.term import Part, Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array
from capplan.records.caveat import Source

DTYPES: Final = {"bf16": "bfloat16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}
"""Precisions of matrices by the table's names."""


BYTES: Final = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5625}
"""A number with its scales."""
BLOCK: Final = 128
"""Numbers along each side of a block that shares a scale (DeepSeek-V3's format)."""


@dataclass(frozen=True)
class Grid:
    """Times of all matrices of one precision. [m, n, k]."""

    rows: Array
    widths: Array
    depths: Array
    times_s: Array
    source: Source


def matrix(
    tables: Silicon, part: Part, what: str, precision: str, shape: tuple[int, int], count: float
) -> Term:
    """A product of every token of the step with a matrix.

    Args:
        tables: Of the GPU and the engine.
        part: What it is counted under.
        what: Its name.
        precision: Of the weights.
        shape: Outputs and inputs on one GPU (n, k).
        count: Times a step.

    Raises:
        Refused: There is no table of the precision, or it does not hold such widths.
    """
    curve, error = product(tables, what, precision, shape)
    narrowed = quantising(tables, precision, shape[1])
    if narrowed is None:
        return Term(part, what, count, lambda load: _at(curve, load), (curve.source,), error)

    def at(load: Load) -> Array:
        return np.asarray(_at(curve, load) + narrowed.at(load))

    return Term(part, what, count, at, (curve.source, narrowed.source), error)


def product(
    tables: Silicon, what: str, precision: str, shape: tuple[int, int]
) -> tuple[Curve, float]:
    """Time by rows of a product with a matrix of n outputs and k inputs, and its relative error.

    A matrix wider than the table is the product of equal pieces one after another.

    Raises:
        Refused: There is no table of the precision, or it does not hold such widths.
    """
    grid = _grid(tables, precision)
    outputs, inputs = shape
    if precision == "fp8_block" and min(shape) < BLOCK:
        rule = f"{what} of {outputs} × {inputs} on a GPU do not hold a block of {BLOCK} numbers"
        raise Refused("split", rule, precision)
    pieces = ceil(outputs / grid.widths[-1]) * ceil(inputs / grid.depths[-1])
    n = max(outputs / ceil(outputs / grid.widths[-1]), grid.widths[0])
    k = max(inputs / ceil(inputs / grid.depths[-1]), grid.depths[0])
    times = pieces * _between(grid, n, k)
    kept = np.isfinite(times)
    if not kept.any():
        raise Refused("weights", f"{what} of {outputs} × {inputs} is not in the table", precision)
    rows = f"gemm_dtype={DTYPES[precision]}, n={n:g}, k={k:g}"
    if pieces > 1:
        rows += f", {pieces} pieces"
    if n not in grid.widths or k not in grid.depths:
        rows += ", interpolated"
    source = Source(what=what, where=f"{grid.source.where}: {rows}", licence=grid.source.licence)
    curve = Curve(tuple(grid.rows[kept].tolist()), tuple(times[kept].tolist()), source)
    return curve, _left_out(grid, n, k)


@lru_cache(maxsize=16)
def _grid(tables: Silicon, precision: str) -> Grid:
    dtype = DTYPES.get(precision)
    found = tables.any_engine("gemm", gemm_dtype=dtype) if dtype else None
    if found is None:
        raise Refused("weights", "has no table of matrix products", precision)
    (rows, widths, depths), times = found.grid("m", "n", "k")
    return Grid(rows, widths, depths, times, found.source)


def _between(grid: Grid, n: float, k: float) -> Array:
    """Times by m of a width between the table's; NaN where a neighbour is missing."""
    total = np.zeros(grid.rows.size)
    for column, column_weight in _sides(grid.widths, n):
        for row, row_weight in _sides(grid.depths, k):
            total += column_weight * row_weight * grid.times_s[:, column, row]
    return total


def _sides(axis: Array, at: float) -> Iterator[tuple[int, float]]:
    below = int(np.clip(np.searchsorted(axis, at, side="right") - 1, 0, axis.size - 1))
    if axis[below] == at:
        yield below, 1.0
        return
    fraction = float((at - axis[below]) / (axis[below + 1] - axis[below]))
    yield below, 1 - fraction
    yield below + 1, fraction


def _left_out(grid: Grid, n: float, k: float) -> float:
    """Median relative error of reading the nearest width from its neighbours; 0 on the table."""
    if n in grid.widths and k in grid.depths:
        return 0.0
    column = int(np.clip(np.abs(grid.widths - n).argmin(), 1, grid.widths.size - 2))
    row = int(np.clip(np.abs(grid.depths - k).argmin(), 1, grid.depths.size - 2))
    errors = []
    for axis, place, times in (
        (grid.widths, column, grid.times_s[:, :, row]),
        (grid.depths, row, grid.times_s[:, column, :]),
    ):
        if (n if axis is grid.widths else k) in axis:
            continue
        share = (axis[place] - axis[place - 1]) / (axis[place + 1] - axis[place - 1])
        read = (1 - share) * times[:, place - 1] + share * times[:, place + 1]
        errors.append(np.abs(read / times[:, place] - 1))
    return float(np.nanmedian(np.concatenate(errors)))


def _at(curve: Curve, load: Load) -> Array:
    return curve.within(np.maximum(load.tokens, 1))
