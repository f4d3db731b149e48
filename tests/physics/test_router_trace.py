"""Traces made with known likeness: what is read from them, and U counted beside U computed."""

import numpy as np
import pytest

from capplan.physics.experts import distinct_experts
from capplan.physics.router_trace import (
    overlap_across,
    overlap_by_lag,
    popularity,
    resampled_distinct,
    traced_routing,
)

EXPERTS, CHOSEN, STAY = 64, 4, 0.4


def top(scores):
    return np.argsort(-scores, axis=-1)[..., :CHOSEN]


@pytest.fixture(scope="module")
def trace():
    """Scores that wander through a text about a bias that all texts share."""
    rng = np.random.default_rng(4)
    bias = 0.6 * rng.standard_normal(EXPERTS)
    scores = np.empty((200, 120, EXPERTS))
    scores[:, 0] = rng.standard_normal((200, EXPERTS))
    for token in range(1, 120):
        fresh = rng.standard_normal((200, EXPERTS))
        scores[:, token] = STAY * scores[:, token - 1] + np.sqrt(1 - STAY**2) * fresh
    return top(scores + bias), top(bias + rng.standard_normal((400_000, EXPERTS)))


def test_popularity_and_overlap_across_texts_are_those_of_the_bias(trace):
    choices, alone = trace
    shares = np.bincount(alone.ravel(), minlength=EXPERTS) / len(alone)
    np.testing.assert_allclose(popularity(choices, EXPERTS), shares, atol=0.02)
    expected = float(shares @ shares) / CHOSEN
    assert overlap_across(choices, EXPERTS) == pytest.approx(expected, rel=0.03)


def test_overlap_fades_to_that_across_texts(trace):
    choices, _ = trace
    by_lag = overlap_by_lag(choices, EXPERTS, 8)
    assert (np.diff(by_lag[:4]) < 0).all()
    assert by_lag[-1] == pytest.approx(overlap_across(choices, EXPERTS), rel=0.05)
    first = [
        len(np.intersect1d(choices[text, token], choices[text, token + 1])) / CHOSEN
        for text in range(0, 200, 5)
        for token in range(0, 119, 3)
    ]
    assert by_lag[0] == pytest.approx(np.mean(first), rel=0.05)


def test_distinct_experts_computed_from_overlaps_are_those_counted_in_the_trace(trace):
    choices, _ = trace
    routing = traced_routing(choices, EXPERTS, lags=7)
    batch, query = np.array([1, 4, 16]), np.array([[1], [2], [4], [8]])
    counted = resampled_distinct(choices, batch, query, draws=400)
    np.testing.assert_allclose(distinct_experts(routing, batch, query), counted, rtol=0.04)
