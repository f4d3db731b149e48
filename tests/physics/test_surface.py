"""Interpolation against SciPy's, and what lies outside."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from capplan.physics.surface import Surface

AXES = ([1.0, 2.0, 8.0], [0.0, 100.0], [1.0, 2.0, 3.0, 9.0])
GRID = np.random.default_rng(4).random((3, 2, 4))


def full() -> Surface:
    points = [(a, b, c) for a in AXES[0] for b in AXES[1] for c in AXES[2]]
    order = np.random.default_rng(5).permutation(len(points))
    return Surface.of_rows(np.array(points)[order], GRID.ravel()[order])


@given(st.floats(1, 8), st.floats(0, 100), st.floats(1, 9))
def test_between_points_it_is_scipys_multilinear(a, b, c):
    expected = RegularGridInterpolator(AXES, GRID)((a, b, c))
    assert float(full().at(a, b, c)) == pytest.approx(float(expected), rel=1e-9, abs=1e-12)


def test_measured_points_come_back_exactly():
    grid = np.meshgrid(*AXES, indexing="ij")
    assert (full().at(*grid) == GRID).all()


@pytest.mark.parametrize(
    "point", [(0.5, 50, 2), (8.1, 50, 2), (2, -1, 2), (2, 50, 10), (np.nan, 0, 1)]
)
def test_outside_there_is_no_number(point):
    assert np.isnan(full().at(*point))


def test_a_hole_spoils_its_neighbourhood_and_nothing_else():
    surface = Surface.of_rows([(1, 1), (1, 2), (2, 1)], [10.0, 20.0, 30.0])
    assert surface.at(1, 1.5) == 15.0
    assert surface.at(1.5, 1) == 20.0
    assert np.isnan(surface.at(1.5, 1.5))
    assert np.isnan(surface.at(2, 2))
    assert not surface.has(2, 2)
    assert surface.has(2, 1)


def test_an_axis_of_one_point_answers_there_alone():
    surface = Surface.of_rows([(1, 5), (2, 5)], [1.0, 2.0])
    assert surface.at(1.5, 5) == 1.5
    assert np.isnan(surface.at(1.5, 6))


def test_clamping_raises_and_lowers_only_where_asked():
    surface = Surface.of_rows([(1, 5), (2, 9)], [1.0, 2.0])
    assert surface.clamped(1, [0, 7, 20]).tolist() == [5, 7, 20]
    assert surface.clamped(1, [0, 7, 20], above=True).tolist() == [5, 7, 9]
