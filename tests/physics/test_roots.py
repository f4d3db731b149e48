"""Roots of functions whose root is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics.roots import crossing


@given(st.floats(-0.9, 0.9), st.floats(0.5, 10))
def test_the_root_of_a_crooked_function_is_found(root, slope):
    found = crossing(lambda x: (x - root) ** 3 + slope * (x - root), -1.0, 1.0)
    assert found == pytest.approx(root, abs=0.05)


def test_a_function_of_one_sign_has_none():
    assert crossing(lambda x: x - 2, -1.0, 1.0) is None
    assert crossing(lambda x: x + 2, -1.0, 1.0) is None
    assert crossing(lambda _: 0.0, -1.0, 1.0) is None
