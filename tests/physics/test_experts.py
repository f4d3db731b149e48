"""Distinct experts: against limits by hand, a published model and a simulation of the routing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.special import betaln

from capplan.physics.experts import (
    Routing,
    distinct_experts,
    independent_routing,
    popular_routing,
)
from capplan.physics.surface import Array

COHERE = Routing(128, 8, across=0.118, within=0.34)
"""Overlaps that Cohere published for a production model of 128 experts, 8 a token:
https://cohere.com/blog/mixture-of-experts-models-get-more-from-speculative-decoding."""


def independent_experts(experts: int, chosen: int, tokens: ArrayLike) -> Array:
    """MoESD (arXiv 2505.19645), section 3: N(t) = E·(1 − ((E − K) / E)^t)."""
    return np.asarray(experts * (1 - ((experts - chosen) / experts) ** np.asarray(tokens)))


def test_one_token_touches_its_own_experts_only() -> None:
    assert distinct_experts(COHERE, 1, 1) == pytest.approx(8, rel=1e-12)


def test_two_tokens_touch_twice_as_many_less_their_overlap() -> None:
    assert distinct_experts(COHERE, 1, 2) == pytest.approx(16 - 8 * 0.34, rel=1e-5)
    assert distinct_experts(COHERE, 2, 1) == pytest.approx(16 - 8 * 0.118, rel=1e-5)


def test_no_overlap_beyond_chance_is_the_independent_formula() -> None:
    batch, query = np.array([1, 4, 16, 64]), np.array([[1], [4], [9]])
    expected = independent_experts(384, 8, batch * query)
    found = distinct_experts(independent_routing(384, 8), batch, query)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_small_excess_overlap_tends_to_the_independent_formula() -> None:
    density = 8 / 384
    nearly = Routing(384, 8, across=density * (1 + 1e-5), within=density * (1 + 2e-5))
    assert distinct_experts(nearly, 32, 4) == pytest.approx(
        independent_experts(384, 8, 128), rel=1e-4
    )


def test_one_sequence_follows_the_beta_binomial_distribution() -> None:
    density, overlap, tokens = 8 / 128, 0.337, np.arange(1, 17)
    size = (1 - overlap) / (overlap - density)
    none = np.exp(
        betaln(size * density, size * (1 - density) + tokens)
        - betaln(size * density, size * (1 - density))
    )
    routing = Routing(128, 8, across=density, within=overlap)
    np.testing.assert_allclose(distinct_experts(routing, 1, tokens), 128 * (1 - none), rtol=1e-10)


def test_four_neighbouring_tokens_touch_what_cohere_reported() -> None:
    # Overlap 0.337 is the mean of the published lags 1 to 3 (0.381, 0.329, 0.301).
    routing = Routing(128, 8, across=8 / 128, within=0.337)
    assert distinct_experts(routing, 1, 4) == pytest.approx(20.36, rel=0.005)


def test_verifying_four_tokens_costs_less_at_small_and_more_at_large_batch_than_independence() -> (
    None
):
    # The ratio U(B, 4) / U(B, 1), worked out separately for both ways of routing.
    batch = np.array([1, 2, 4, 8, 16, 32, 64, 128])
    overlapping = [2.52, 2.32, 2.04, 1.73, 1.46, 1.26, 1.14, 1.07]
    independent = [3.64, 3.33, 2.83, 2.17, 1.53, 1.14, 1.02, 1.00]
    ratio = distinct_experts(COHERE, batch, 4) / distinct_experts(COHERE, batch, 1)
    np.testing.assert_allclose(ratio, overlapping, atol=0.006)
    alone = independent_routing(128, 8)
    ratio = distinct_experts(alone, batch, 4) / distinct_experts(alone, batch, 1)
    np.testing.assert_allclose(ratio, independent, atol=0.006)


@pytest.mark.parametrize(("batch", "query", "prefill"), [(1, 8, 0), (12, 4, 0), (6, 3, 20)])
def test_a_simulation_of_the_routing_touches_as_many(batch: int, query: int, prefill: int) -> None:
    rng = np.random.default_rng(7)
    runs, routing = 400, COHERE
    size = (1 - routing.across) / (routing.across - routing.density)
    inner = (1 - routing.within) / (routing.within - routing.across)
    shape = (runs, routing.experts)
    popular = rng.beta(size * routing.density, size * (1 - routing.density), shape)
    popular = np.clip(popular, 1e-12, 1 - 1e-12)[..., None]
    chance = rng.beta(inner * popular, inner * (1 - popular), (*shape, batch))
    chosen = (rng.random((*shape, batch, query)) < chance[..., None]).any(axis=(-1, -2))
    chosen |= (rng.random((*shape, prefill)) < popular).any(axis=-1)
    counts = chosen.sum(axis=1)
    error = counts.std() / np.sqrt(runs)
    assert distinct_experts(routing, batch, query, prefill) == pytest.approx(
        counts.mean(), abs=4 * error
    )


@st.composite
def routings(draw: st.DrawFn) -> Routing:
    experts = draw(st.integers(4, 512))
    chosen = draw(st.integers(1, experts // 2))
    density = chosen / experts
    across = density + (0.95 - density) * draw(st.floats(0, 0.9))
    within = across + (0.97 - across) * draw(st.floats(0, 0.9))
    return Routing(experts, chosen, across=across, within=within)


@settings(deadline=None)
@given(routings(), st.integers(1, 64), st.integers(1, 9))
def test_a_step_touches_at_least_one_tokens_experts_and_at_most_all(
    routing: Routing, batch: int, query: int
) -> None:
    touched = float(distinct_experts(routing, batch, query))
    most = min(routing.experts, routing.experts_per_token * batch * query)
    assert routing.experts_per_token * (1 - 1e-6) <= touched <= most * (1 + 1e-6)


@settings(deadline=None)
@given(routings(), st.integers(1, 64), st.integers(1, 9))
def test_more_tokens_never_touch_fewer_experts(routing: Routing, batch: int, query: int) -> None:
    here = distinct_experts(routing, batch, query)
    assert distinct_experts(routing, batch + 1, query) >= here - 1e-9
    assert distinct_experts(routing, batch, query + 1) >= here - 1e-9
    assert distinct_experts(routing, batch, query, prefill_tokens=5) >= here - 1e-9


@settings(deadline=None)
@given(routings(), st.integers(1, 64), st.integers(1, 9))
def test_independent_tokens_touch_the_most(routing: Routing, batch: int, query: int) -> None:
    independent = independent_experts(routing.experts, routing.experts_per_token, batch * query)
    assert distinct_experts(routing, batch, query) <= independent * (1 + 1e-6)


@pytest.mark.parametrize(("across", "within"), [(0.01, 0.3), (0.3, 0.2), (0.3, 1.0)])
def test_overlaps_that_no_routing_has_are_refused(across: float, within: float) -> None:
    with pytest.raises(ValueError, match="overlaps must satisfy"):
        Routing(128, 8, across=across, within=within)


def test_known_popularity_gives_the_sum_over_experts() -> None:
    chance = np.array([0.9, 0.5, 0.3, 0.2, 0.1, 0.0])
    expected = [(1 - (1 - chance) ** tokens).sum() for tokens in (1, 3, 20)]
    found = distinct_experts(popular_routing(chance), [1, 3, 20], 1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_known_popularity_with_likeness_inside_a_sequence_is_as_a_simulation_has_it() -> None:
    chance = np.array([0.7, 0.5, 0.4, 0.2, 0.1, 0.1])
    routing = popular_routing(chance, within=0.75)
    rng = np.random.default_rng(2)
    inner = (1 - routing.within) / (routing.within - routing.across)
    drawn = rng.beta(inner * chance, inner * (1 - chance), (40_000, 3, 6))
    chosen = (rng.random((40_000, 3, 4, 6)) < drawn[:, :, None]).any(axis=(1, 2)).sum(axis=1)
    assert distinct_experts(routing, 3, 4) == pytest.approx(chosen.mean(), rel=0.01)


def test_a_popularity_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="a share of the tokens"):
        popular_routing([1.2, 0.8])
