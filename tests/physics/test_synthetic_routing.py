"""Routings drawn again, against a token-by-token retelling of the published generator."""

import numpy as np
import pytest

from capplan.physics.synthetic_routing import routed_counts


def mend(counts, amount, able, pick, step, ranks):
    while amount:
        for rank in range(ranks):
            open_ = np.flatnonzero(able(counts[rank]))
            if amount and len(open_):
                counts[rank, open_[pick(counts[rank][open_])]] += step
                amount -= 1


def one_draw(exponent, tokens, experts, chosen, ranks, rng):
    low, high = (1, tokens * 0.8) if tokens * chosen > experts else (0.01, 2)
    power = 1 - exponent
    drawn = (rng.random(experts) * (high**power - low**power) + low**power) ** (1 / power)
    counts = np.round(drawn / drawn.sum() * tokens * chosen).astype(int)
    counts = np.minimum(counts, tokens).reshape(ranks, -1)
    missing = tokens * chosen - counts.sum()
    if missing > 0:
        mend(counts, missing, lambda c: c < tokens, np.argmin, 1, ranks)
    else:
        mend(counts, -missing, lambda c: c > 0, np.argmax, -1, ranks)
    return counts[counts.sum(axis=1).argmax()]


@pytest.mark.parametrize(
    ("tokens", "experts", "chosen", "ranks", "exponent"),
    [(1, 128, 8, 1, 1.01), (16, 256, 8, 8, 1.2), (64, 256, 8, 1, 1.2), (128, 8, 2, 8, 1.2)],
)
def test_power_law_counts_are_those_of_the_generator_told_token_by_token(
    tokens, experts, chosen, ranks, exponent
):
    rng = np.random.default_rng(5)
    told = [one_draw(exponent, tokens, experts, chosen, ranks, rng) for _ in range(300)]
    drawn = routed_counts(f"power_law_{exponent}", tokens, experts, chosen, ranks)
    for statistic in (lambda c: (c > 0).sum(axis=1), lambda c: c.sum(axis=1)):
        expected, found = statistic(np.array(told)), statistic(drawn)
        error = np.hypot(expected.std() / np.sqrt(300), expected.std() / np.sqrt(len(drawn)))
        assert found.mean() == pytest.approx(expected.mean(), abs=4 * error + 1e-9)


def test_balanced_tokens_touch_new_experts_until_all_are_touched():
    for tokens, distinct in ((1, 8), (4, 32), (16, 128), (64, 128)):
        counts = routed_counts("balanced", tokens, 128, 8)
        assert counts.sum() == tokens * 8
        assert (counts > 0).sum() == distinct


def test_every_choice_is_made_and_no_expert_twice_by_one_token():
    for tokens in (1, 3, 40, 700):
        counts = routed_counts("power_law_1.2", tokens, 8, 2)
        assert (counts.sum(axis=1) == 2 * tokens).all()
        assert counts.max() <= tokens


def test_an_unknown_routing_is_refused():
    with pytest.raises(ValueError, match="no generator is known for the routing zipf"):
        routed_counts("zipf_1.1", 4, 8, 2)
