"""The worked example of the README, and limits by hand."""

import numpy as np
import pytest

from capplan.physics import acceptance, drafting

PASS_S, DRAFT_S = 0.030, 0.006


def token_s(chance: float, efficiency: float) -> float:
    """Seconds a token with four drafts of constant chance."""
    tokens = acceptance.tokens_per_round([chance ** (i + 1) for i in range(4)])[4]
    return float(drafting.round_s(PASS_S / efficiency, DRAFT_S) / tokens)


def test_worked_example_of_the_readme():
    assert token_s(0.8, 1.0) == pytest.approx(0.0107, abs=5e-5)
    assert PASS_S / token_s(0.8, 1.0) == pytest.approx(2.8, abs=0.05)
    assert token_s(0.8, 0.8) == pytest.approx(0.013, abs=1e-4)
    assert token_s(0.4, 1.0) == pytest.approx(0.0218, abs=5e-5)


def test_poor_acceptance_loses_below_an_efficiency_of_069():
    tokens = acceptance.tokens_per_round([0.4 ** (i + 1) for i in range(4)])[4]
    edge = float(drafting.break_even_target_efficiency(PASS_S, DRAFT_S, tokens))
    assert edge == pytest.approx(0.69, abs=0.005)
    assert token_s(0.4, edge) == pytest.approx(PASS_S)
    assert token_s(0.4, edge - 0.01) > PASS_S > token_s(0.4, edge + 0.01)


def test_drafting_dearer_than_what_it_wins_breaks_even_nowhere():
    assert np.isinf(drafting.break_even_target_efficiency(0.03, 0.06, 2.0))


def test_high_acceptance_can_lose():
    # 97 % acceptance at one draft, seen at 0.37x (1.97 tokens a round of 5.32 decode steps).
    assert drafting.speed_up(1.0, 5.32, 1.97) == pytest.approx(0.37, abs=0.001)
    assert drafting.break_even_tokens_per_round(1.0, 5.32) == pytest.approx(5.32)


def test_a_drafter_that_is_loaded_and_idle_slows_plain_steps():
    assert drafting.plain_step_with_drafter_s(0.02, 0.05) == pytest.approx(0.021)
