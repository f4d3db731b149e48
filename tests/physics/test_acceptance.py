"""Tokens per round against arithmetic done elsewhere, and against a simulation of draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from capplan.physics import acceptance


def constant(chance: float, positions: int) -> list[float]:
    return [chance ** (i + 1) for i in range(positions)]


@pytest.mark.parametrize(
    ("chance", "positions", "tokens"),
    [(0.8, 4, 3.3616), (0.4, 4, 1.6496), (0.0, 4, 1.0), (1.0, 4, 5.0)],
)
def test_a_constant_chance_gives_the_closed_form_of_leviathan(chance, positions, tokens):
    assert acceptance.tokens_per_round(constant(chance, positions))[positions] == pytest.approx(
        tokens
    )


def test_published_lengths_come_back_from_their_own_differences():
    # InferenceX golden curve, Kimi-K2.5 NVFP4 with EAGLE-3, thinking, commit 843c625.
    published = [1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77]
    shares = np.diff([1.0, *published])
    assert acceptance.tokens_per_round(shares)[1:] == pytest.approx(published)


def test_mean_and_variance_agree_with_a_simulation_of_rounds():
    chances = np.array([0.8, 0.6, 0.7])
    rng = np.random.default_rng(1)
    kept = np.cumprod(rng.random((400_000, 3)) < chances, axis=1)
    for drafts in (1, 2, 3):
        emitted = 1 + kept[:, :drafts].sum(axis=1)
        error = emitted.std() / np.sqrt(len(emitted))
        shares = np.cumprod(chances)
        assert acceptance.tokens_per_round(shares)[drafts] == pytest.approx(
            emitted.mean(), abs=4 * error
        )
        assert acceptance.tokens_per_round_variance(shares)[drafts] == pytest.approx(
            emitted.var(), rel=0.01
        )


def test_a_round_without_drafts_always_emits_one_token():
    assert acceptance.tokens_per_round([0.9])[0] == 1.0
    assert acceptance.tokens_per_round_variance([0.9])[0] == 0.0


def test_a_mix_of_classes_is_harmonic():
    # 100 tokens in 50 rounds and 100 in 25: 200 tokens took 75 rounds, not 3 a round.
    assert acceptance.mixed_tokens_per_round([100, 100], [50, 25]) == pytest.approx(200 / 75)


def test_shifting_by_nothing_changes_nothing_and_by_one_keeps_everything():
    shares = [0.8, 0.5, 0.1]
    assert acceptance.shifted_shares(shares, 0.0) == pytest.approx(shares)
    assert acceptance.shifted_shares(shares, 1.0).tolist() == [1.0, 1.0, 1.0]
    assert acceptance.shifted_shares(shares, -1.0).tolist() == [0.0, 0.0, 0.0]


def test_spread_between_requests_costs_what_the_closed_form_says():
    # Chance 0.7 with three drafts gives 2.533 tokens; at 0.467 it is 1 + .467 + .218 + .102.
    shares = acceptance.shifted_shares(constant(0.7, 3), -0.233)
    assert acceptance.tokens_per_round(shares)[3] == pytest.approx(1.787, abs=1e-3)


@given(hnp.arrays(float, 5, elements=st.floats(0, 1)))
def test_tokens_per_round_rise_with_draft_length_and_stay_within_it(chances):
    tokens = acceptance.tokens_per_round(np.cumprod(chances))
    assert (np.diff(tokens) >= 0).all()
    assert (tokens >= 1).all()
    assert (tokens <= np.arange(1, 7)).all()
    variance = acceptance.tokens_per_round_variance(np.cumprod(chances))
    assert (variance > -1e-9).all()
