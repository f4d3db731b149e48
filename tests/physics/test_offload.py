"""Experts in host memory: limits by hand and a simulation of tokens."""

import numpy as np
import pytest

from capplan.physics.experts import (
    Routing,
    distinct_experts,
    independent_routing,
    popular_routing,
)
from capplan.physics.offload import fetching_s, missed_experts

SKEWED = Routing(128, 8, across=0.118, within=0.34)


def test_nothing_is_missed_where_all_is_kept_and_all_where_nothing_is() -> None:
    assert missed_experts(SKEWED, 0.0, 8, 4) == 0
    assert missed_experts(SKEWED, 1.0, 8, 4) == pytest.approx(float(distinct_experts(SKEWED, 8, 4)))


def test_without_popularity_misses_are_the_share_of_what_is_touched() -> None:
    routing = independent_routing(384, 8)
    found = missed_experts(routing, 0.25, np.array([1, 32]), 1)
    np.testing.assert_allclose(found, 0.25 * distinct_experts(routing, np.array([1, 32]), 1))


def test_the_least_popular_are_missed_as_often_as_tokens_choose_them() -> None:
    chance = np.array([0.9, 0.6, 0.3, 0.1, 0.08, 0.02])
    rng = np.random.default_rng(3)
    chosen = (rng.random((50_000, 5, 6)) < chance).any(axis=1)
    counted = chosen[:, 3:].sum(axis=1).mean()
    assert missed_experts(popular_routing(chance), 0.5, 5, 1) == pytest.approx(counted, rel=0.02)


def test_popular_experts_are_worth_keeping() -> None:
    even = missed_experts(independent_routing(128, 8), 0.5, 8, 1)
    assert missed_experts(SKEWED, 0.5, 8, 1) < 0.5 * even


def test_fetching_takes_bytes_over_the_link() -> None:
    assert fetching_s(3, 10e6, 50e9) == pytest.approx(600e-6)
