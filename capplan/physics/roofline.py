"""Time of one kernel by the rows it works on: from a published table, or from the roofline."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.surface import Array
from capplan.records.caveat import Source


@dataclass(frozen=True)
class Curve:
    """Published times at some sizes, with straight lines between them.

    Cliffs stay: a table that holds 256 and 257 rows keeps the step between the two.
    """

    sizes: tuple[float, ...]
    """What the table counts (tokens, sequences, elements), rising."""
    times_s: tuple[float, ...]
    source: Source

    def at(self, size: ArrayLike) -> Array:
        """Time at these sizes [s].

        Raises:
            ValueError: A size lies outside the table.
        """
        size = np.asarray(size, dtype=float)
        if np.any(size < self.sizes[0]) or np.any(size > self.sizes[-1]):
            raise ValueError(
                f"{self.source.what}: sizes {size.min():g} to {size.max():g} leave the table, "
                f"which covers {self.sizes[0]:g} to {self.sizes[-1]:g}"
            )
        return np.asarray(np.interp(size, self.sizes, self.times_s))

    def within(self, size: ArrayLike) -> Array:
        """Time at these sizes [s], NaN outside the table."""
        sizes = np.asarray(size, dtype=float)
        return np.asarray(np.interp(sizes, self.sizes, self.times_s, left=np.nan, right=np.nan))


@dataclass(frozen=True)
class Roofline:
    """A kernel, or several in a row, bound by launching, by memory or by arithmetic.

    T(n) = launch + max((weights + n·bytes a row) / bandwidth, n·flop a row / flop rate)

    Source:
        Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009, with a launch term added.
    """

    launch_s: float
    bandwidth_bytes_per_s: float
    """What kernels reach, not the label."""
    flop_per_s: float
    weights_bytes: float
    """On one GPU, read once whatever the rows."""
    flop_per_row: float
    source: Source
    bytes_per_row: float = 0.0

    def at(self, size: ArrayLike) -> Array:
        """Time for these rows [s]."""
        rows = np.asarray(size, dtype=float)
        moved = self.weights_bytes + rows * self.bytes_per_row
        memory_s = moved / self.bandwidth_bytes_per_s
        return np.asarray(
            self.launch_s + np.maximum(memory_s, rows * self.flop_per_row / self.flop_per_s)
        )


Kernel = Curve | Roofline
