"""A quantity measured on a grid, read between its points and nowhere else."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Surface:
    """Values on a rectangular grid with holes; multilinear between points.

    Attributes:
        axes: Sorted coordinates, one array an axis.
        values: One value a grid point, NaN where nothing was measured. [len(axis) for each axis]
    """

    axes: tuple[Array, ...]
    values: Array

    @classmethod
    def of_rows(cls, points: ArrayLike, values: ArrayLike) -> Self:
        """Builds the grid that the rows span.

        Args:
            points: Coordinates. [rows, axes]
            values: The quantity at each row. [rows]
        """
        coordinates = np.asarray(points, dtype=float)
        axes, places = [], []
        for column in coordinates.T:
            axis, place = np.unique(column, return_inverse=True)
            axes.append(axis)
            places.append(place)
        grid = np.full([len(axis) for axis in axes], np.nan)
        grid[tuple(places)] = values
        return cls(tuple(axes), grid)

    def at(self, *coordinates: ArrayLike) -> Array:
        """Interpolated values, exact at measured points.

        Args:
            coordinates: One array an axis, broadcast together.

        Returns:
            The quantity; NaN outside the hull and beside holes. [broadcast shape]
        """
        sides = []
        outside = np.asarray(False)
        for axis, step, stride, coordinate in zip(
            self.axes, self._steps, self._strides, coordinates, strict=True
        ):
            below, fraction, beyond = _bracket(axis, step, np.asarray(coordinate, dtype=float))
            pair = (below * stride, 1 - fraction), ((below + 1) * stride, fraction)
            # A neighbour without weight anywhere is left out: most often a measured draft length's.
            sides.append([(place, weight) for place, weight in pair if weight.any()])
            outside = outside | beyond
        total: Array = np.zeros(np.broadcast_shapes(*(np.shape(c) for c in coordinates)))
        for corner in product(*sides):
            places, weights = zip(*corner, strict=True)
            share, value = math.prod(weights), self.values.take(sum(places))
            # A hole must not spoil points that give it no weight: 0 * NaN is NaN.
            total += np.where(share > 0, share * value, 0.0) if self._holes else share * value
        return np.where(outside, np.nan, total)

    @cached_property
    def _strides(self) -> list[int]:
        """How far apart neighbours along each axis lie in the flattened grid."""
        shape = self.values.shape
        return [math.prod(shape[place + 1 :]) for place in range(len(shape))]

    @cached_property
    def _steps(self) -> list[Array]:
        """From each coordinate of an axis to the next."""
        return [np.diff(axis) for axis in self.axes]

    @cached_property
    def _holes(self) -> bool:
        return bool(np.isnan(self.values).any())

    def has(self, *coordinates: float) -> bool:
        """Whether the point itself was measured."""
        return all(c in axis for c, axis in zip(coordinates, self.axes, strict=True)) and bool(
            np.isfinite(self.at(*coordinates))
        )

    def clamped(self, axis: int, coordinate: ArrayLike, *, above: bool = False) -> Array:
        """The coordinate raised to the smallest measured one, with `above` also lowered.

        Raising is for axes along which the quantity grows: it errs to the safe side.
        """
        inside = np.maximum(np.asarray(coordinate, dtype=float), self.axes[axis][0])
        return np.asarray(np.minimum(inside, self.axes[axis][-1]) if above else inside)


def _bracket(
    axis: Array, step: Array, coordinate: Array
) -> tuple[NDArray[np.intp], Array, NDArray[np.bool_]]:
    """Index of the point below, the fraction of the way to the next, and whether it is outside."""
    beyond = ~((coordinate >= axis[0]) & (coordinate <= axis[-1]))
    if len(axis) == 1:
        return np.zeros(coordinate.shape, dtype=np.intp), np.zeros(coordinate.shape), beyond
    below = np.searchsorted(axis[1:-1], coordinate, side="right")
    fraction = (coordinate - axis[below]) / step[below]
    return below, np.where(beyond, 0.0, fraction), beyond
