"""Quantile nodes against SciPy's distributions and against published statistics."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from capplan.physics import lengths


def test_weights_are_probabilities():
    assert lengths.WEIGHTS.sum() == pytest.approx(1)
    assert (lengths.WEIGHTS >= 0).all()


def test_lognormal_nodes_are_scipys_quantiles():
    nodes = lengths.lognormal_nodes(1000.0, 0.5, 1e9)
    sigma = math.sqrt(math.log(1.25))
    exact = stats.lognorm(sigma, scale=1000 / math.sqrt(1.25)).ppf(lengths.PROBABILITIES)
    assert nodes == pytest.approx(exact, rel=0.01)
    assert lengths.WEIGHTS @ nodes == pytest.approx(1000)
    assert lengths.WEIGHTS @ nodes**2 == pytest.approx(1000**2 * 1.25, rel=0.02)


def test_the_reported_percentiles_are_nodes_of_their_own():
    nodes = lengths.quantile_nodes({0.5: 53.0, 0.9: 461.0, 0.95: 539.0, 0.99: 872.0}, 8192.0)
    assert nodes[-4:] == pytest.approx([53, 461, 539, 872])


def test_quantiles_of_servegen_nearly_give_its_published_mean():
    # ServeGen m-large, output tokens: the quantiles and the mean were published together.
    nodes = lengths.quantile_nodes({0.5: 53.0, 0.9: 461.0, 0.95: 539.0, 0.99: 872.0}, 8192.0)
    assert lengths.WEIGHTS @ nodes == pytest.approx(155.1, rel=0.10)


def test_no_spread_gives_one_length():
    assert lengths.lognormal_nodes(200.0, 0.0, 1000.0) == pytest.approx(200.0)


@given(st.floats(1, 1e5), st.floats(0, 3), st.floats(1, 20))
def test_nodes_keep_the_mean_and_the_cap(mean, cv, room):
    nodes = lengths.lognormal_nodes(mean, cv, mean * room)
    assert (nodes <= mean * room * (1 + 1e-9)).all()
    assert float(lengths.WEIGHTS @ nodes) == pytest.approx(mean, rel=1e-6)
