"""Against arithmetic by hand, and a simulation that goes step by step."""

import numpy as np
import pytest

from capplan.backtester.tpot import CHUNK_TOKENS, Requests, Steps, tpot_s

DECODE_S, A_SEQUENCE_S, A_TOKEN_S = 10e-3, 0.1e-3, 20e-6


def step_s(load):
    decoding = np.where(load.batch > 0, DECODE_S + A_SEQUENCE_S * load.batch, 0.0)
    return decoding + A_TOKEN_S * load.prefill_tokens


STEPS = Steps(step_s, capacity_tokens=1e9, copies=1)


@pytest.mark.parametrize("alike", [True, False])
def test_one_request_meets_no_prompt_of_others(alike):
    found = tpot_s(STEPS, Requests(1, 1000, 200, alike))
    assert found == pytest.approx(DECODE_S + A_SEQUENCE_S, rel=1e-3)


@pytest.mark.parametrize("alike", [True, False])
def test_long_answers_hide_prompts(alike):
    found = tpot_s(STEPS, Requests(16, 16, 100_000, alike))
    assert found == pytest.approx(DECODE_S + 16 * A_SEQUENCE_S, rel=0.01)


def test_prompts_that_come_one_at_a_time_are_met_once_an_answer():
    # 32 requests in flight, answers of 500: 31 prompts of 1,024 tokens fall into each.
    found = tpot_s(STEPS, Requests(32, 1024, 500, alike=False))
    assert found == pytest.approx(DECODE_S + 3.2e-3 + 31 * 1024 * A_TOKEN_S / 500, rel=0.03)


def test_alike_requests_whose_prompts_share_one_step_meet_none():
    # 32 prompts of 128 tokens are half of a step's: all go round together.
    assert CHUNK_TOKENS > 32 * 128
    found = tpot_s(STEPS, Requests(32, 128, 500, alike=True))
    assert found == pytest.approx(DECODE_S + 3.2e-3, rel=0.01)


def test_requests_that_the_cache_cannot_hold_wait():
    roomy = tpot_s(STEPS, Requests(8, 1000, 1000, alike=False))
    held = Steps(step_s, capacity_tokens=8 * 1500, copies=1)
    crowded = tpot_s(held, Requests(64, 1000, 1000, alike=False))
    # Eight decode, and as each ends the next prompt comes: no slower than eight alone.
    assert crowded == pytest.approx(roomy, rel=0.05)


def test_steps_outside_the_tables_are_not_a_number():
    assert np.isnan(
        tpot_s(Steps(lambda load: load.batch * np.nan, 1e9, 1), Requests(2, 9, 9, True))
    )


def simulated(in_flight, lengths, answers):
    """Every step one by one: whole prompts as far as they fit, decoding goes on beside them."""
    rng = np.random.default_rng(5)
    waiting = [int(rng.choice(lengths)) for _ in range(in_flight)]
    left: list[list[float]] = []
    clock, done = 0.0, []
    while len(done) < 40 * in_flight:
        budget, new = CHUNK_TOKENS - len(left), []
        while waiting and waiting[0] <= budget:
            budget -= waiting[0]
            new.append(waiting.pop(0))
        clock += A_TOKEN_S * sum(new) + (DECODE_S + A_SEQUENCE_S * len(left) if left else 0.0)
        for one in left:
            one[0] -= 1
        for one in [one for one in left if one[0] <= 0]:
            left.remove(one)
            done.append((clock - one[1]) / one[2])
            waiting.append(int(rng.choice(lengths)))
        for _ in new:
            answer = int(rng.choice(answers)) - 1
            left.append([answer, clock, answer])
    return float(np.mean(done[10 * in_flight :]))


@pytest.mark.parametrize("in_flight", [4, 16, 64])
def test_drawn_lengths_as_simulated(in_flight):
    lengths, answers = np.arange(820, 1025), np.arange(410, 513)
    found = tpot_s(STEPS, Requests(in_flight, 922, 461, alike=False))
    assert found == pytest.approx(simulated(in_flight, lengths, answers), rel=0.04)


@pytest.mark.parametrize("in_flight", [4, 16, 64])
def test_equal_lengths_as_simulated(in_flight):
    found = tpot_s(STEPS, Requests(in_flight, 1024, 512, alike=True))
    assert found == pytest.approx(simulated(in_flight, [1024], [512]), rel=0.04)
