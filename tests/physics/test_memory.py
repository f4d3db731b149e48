"""What fits, by hand and by sampling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics import lengths, memory


def test_with_equal_contexts_the_cache_divides():
    assert memory.batch_that_fits(100_000, 1000, 0.0) == pytest.approx(100)


def test_fluctuating_contexts_leave_room_for_one_moment_in_a_hundred():
    mean, deviation, capacity = 1000.0, 800.0, 100_000.0
    batch = int(memory.batch_that_fits(capacity, mean, deviation**2))
    rng = np.random.default_rng(2)
    # Gamma contexts with that mean and deviation: the sum of a batch is close to normal.
    shape, scale = (mean / deviation) ** 2, deviation**2 / mean
    totals = rng.gamma(shape, scale, (20_000, batch)).sum(axis=1)
    assert np.mean(totals > capacity) == pytest.approx(0.01, abs=0.006)


def test_residents_are_length_biased():
    # Answers of 100 and 300 tokens, half each: a resident belongs to a long one three times of
    # four, so its mean position is 0.25 * 50 + 0.75 * 150.
    decode = np.array([100.0, 300.0])
    found = memory.resident(np.array([1000.0, 1000.0]), decode, np.array([0.5, 0.5]))
    assert found.mean_tokens == pytest.approx(1125)


def test_residents_agree_with_a_sampled_timeline():
    rng = np.random.default_rng(3)
    nodes = lengths.lognormal_nodes(400.0, 1.0, 20_000.0)
    answers = rng.choice(nodes, size=400_000, p=lengths.WEIGHTS)
    # A random moment of back-to-back answers falls into one by its length.
    picked = rng.choice(answers, size=400_000, p=answers / answers.sum())
    positions = picked * rng.random(len(picked))
    found = memory.resident(np.zeros_like(nodes), nodes, lengths.WEIGHTS)
    assert found.mean_tokens == pytest.approx(positions.mean(), rel=0.01)
    assert found.variance == pytest.approx(positions.var(), rel=0.03)


def test_one_token_answers_hold_their_prompt_alone():
    found = memory.resident(np.array([10.0]), np.array([0.0]), np.array([1.0]))
    assert (found.mean_tokens, found.variance) == (10.0, 0.0)


def test_a_drafter_takes_its_weights_and_its_own_cache():
    # 10,000 tokens of 100 B; 200 kB of drafter leave 800 kB for tokens of 100 + 25 B.
    assert memory.kv_tokens_beside_drafter(10_000, 100, 200_000, 25) == pytest.approx(6_400)
    assert memory.kv_tokens_beside_drafter(1_000, 100, 200_000, 25) == 0.0


def test_weights_at_the_brim_do_not_fit():
    assert not memory.weights_fit(8e9, 8, 1e9)
    assert memory.weights_fit(8e9 - 1, 8, 1e9)
    assert memory.gpus_for_weights(8e9, 1e9) == 9


@given(st.floats(1e3, 1e8), st.floats(1, 1e4), st.floats(0, 1e8))
def test_more_room_never_fits_fewer(capacity, mean, variance):
    one = memory.batch_that_fits(capacity, mean, variance)
    assert memory.batch_that_fits(capacity * 2, mean, variance) >= one
    assert one * mean <= capacity * (1 + 1e-9)
