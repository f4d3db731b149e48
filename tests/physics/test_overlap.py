"""Overlaps and distinct experts against counting by hand and against routing that is known."""

import itertools

import numpy as np
import pytest

from capplan.physics import overlap
from capplan.physics.experts import Routing, distinct_experts

EXPERTS, CHOSEN, LAYERS = 32, 4, 2


def independent(tokens: int, seed: int, chance: np.ndarray | None = None) -> np.ndarray:
    """Choices of a text whose tokens choose alone; by popularity where chances are given."""
    rng = np.random.default_rng(seed)
    weight = np.zeros(EXPERTS) if chance is None else np.log(chance)
    noise = rng.gumbel(size=(tokens, LAYERS, EXPERTS)) + weight
    return np.argsort(-noise, axis=-1)[..., :CHOSEN]


def persistent(tokens: int, seed: int, keep: float) -> np.ndarray:
    """Choices of a text whose tokens keep each expert of the one before with a chance."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((tokens, LAYERS, CHOSEN), dtype=int)
    for layer in range(LAYERS):
        now = rng.permutation(EXPERTS)[:CHOSEN]
        for token in range(tokens):
            stay = now[rng.random(CHOSEN) < keep]
            fresh = rng.permutation(np.setdiff1d(np.arange(EXPERTS), stay))
            now = np.concatenate([stay, fresh[: CHOSEN - len(stay)]])
            rows[token, layer] = now
    return rows


def test_small_texts_by_hand() -> None:
    texts = [np.array([[[0, 1]], [[1, 2]], [[0, 1]]]), np.array([[[1, 3]], [[3, 2]]])]
    assert overlap.overlap_at_lags(texts, 4, 2).ravel() == pytest.approx([0.5, 1.0])
    pairs = [(set(a[0]), set(b[0])) for a, b in itertools.product(texts[0], texts[1])]
    assert overlap.overlap_across(texts, 4) == pytest.approx(
        np.mean([len(a & b) / 2 for a, b in pairs])
    )
    assert overlap.distinct_of_neighbours(texts, 4, 3).ravel() == pytest.approx([2, 3, 3])
    assert overlap.popularity(texts, 4) == pytest.approx(np.array([[2, 4, 2, 2]]) / 5)


def test_tokens_that_choose_alone_overlap_by_chance_and_touch_what_the_formula_says() -> None:
    texts = [independent(400, seed) for seed in range(20)]
    density = CHOSEN / EXPERTS
    assert overlap.overlap_across(texts, EXPERTS) == pytest.approx(density, rel=0.01)
    assert overlap.overlap_at_lags(texts, EXPERTS, 16) == pytest.approx(density, rel=0.06)
    alone = overlap.distinct_of_neighbours(texts, EXPERTS, 8).mean(axis=1)
    exact = EXPERTS * (1 - (1 - density) ** np.arange(1, 9))
    assert alone == pytest.approx(exact, rel=0.01)
    step = overlap.distinct_of_batch(texts, EXPERTS, 4, 2, seed=0).mean()
    assert step == pytest.approx(exact[7], rel=0.02)


def test_popularity_alone_makes_sequences_overlap_as_neighbours_do() -> None:
    chance = np.random.default_rng(1).dirichlet(np.full(EXPERTS, 0.7))
    texts = [independent(400, seed, chance) for seed in range(30)]
    across = overlap.overlap_across(texts, EXPERTS).mean()
    assert across > 2 * CHOSEN / EXPERTS
    lags = overlap.overlap_at_lags(texts, EXPERTS, 4).mean(axis=1)
    assert lags == pytest.approx(across, rel=0.03)
    popular = overlap.popularity(texts, EXPERTS)
    assert overlap.overlap_between(popular, popular, CHOSEN).mean() == pytest.approx(
        across, rel=0.02
    )


def test_overlap_of_neighbours_fades_as_it_was_made_to() -> None:
    keep = 0.6
    texts = [persistent(400, seed, keep) for seed in range(20)]
    found = overlap.overlap_at_lags(texts, EXPERTS, 6).mean(axis=1)
    # An expert that is left comes back as one of k - stayed among E - stayed: a chain of two states
    density = CHOSEN / EXPERTS
    back = CHOSEN * (1 - keep) / (EXPERTS - CHOSEN * keep)
    stay = keep + (1 - keep) * back
    rate = (stay - density) / (1 - density)
    assert found == pytest.approx(density + (1 - density) * rate ** np.arange(1, 7), rel=0.05)


def test_the_formula_meets_counts_of_texts_that_persist() -> None:
    texts = [persistent(300, seed, 0.6) for seed in range(30)]
    lags = overlap.overlap_at_lags(texts, EXPERTS, 16).mean(axis=1).tolist()
    across = float(overlap.overlap_across(texts, EXPERTS).mean())
    for query in (2, 4, 8):
        counted = overlap.distinct_of_neighbours(texts, EXPERTS, query)[-1].mean()
        formula = overlap.predicted((EXPERTS, CHOSEN), across, lags, (1, query))
        assert formula == pytest.approx(counted, rel=0.05), query


def test_pairs_of_a_window_weigh_alike() -> None:
    lags = [0.5, 0.3, 0.1]
    assert overlap.within(lags, 1) == 0.5
    assert overlap.within(lags, 2) == 0.5
    assert overlap.within(lags, 4) == pytest.approx((3 * 0.5 + 2 * 0.3 + 0.1) / 6)


def test_the_formula_is_that_of_experts_where_overlaps_are_possible() -> None:
    routing = Routing(EXPERTS, CHOSEN, across=0.2, within=0.4)
    found = overlap.predicted((EXPERTS, CHOSEN), 0.2, [0.4] * 16, (3, 5))
    assert found == pytest.approx(float(distinct_experts(routing, 3, 5)))
    # Overlaps that noise put below independence are taken for independence.
    least = overlap.predicted((EXPERTS, CHOSEN), 0.1, [0.11] * 16, (1, 4))
    assert least == pytest.approx(EXPERTS * (1 - (1 - CHOSEN / EXPERTS) ** 4))


def test_texts_too_short_are_told() -> None:
    with pytest.raises(ValueError, match="16 places apart"):
        overlap.overlap_at_lags([independent(10, 0)], EXPERTS, 16)
    with pytest.raises(ValueError, match="12 tokens"):
        overlap.distinct_of_neighbours([independent(10, 0)], EXPERTS, 12)
