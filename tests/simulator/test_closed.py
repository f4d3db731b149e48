"""A fixed number of requests in flight."""

import numpy as np
import pytest

from capplan.simulator.closed import simulate_closed
from simulator.engines import engine, geometric, lognormal, requests


def ends_s(outcome):
    return outcome.arrival_s + outcome.ttft_s + outcome.decode_s


def test_one_in_flight_comes_when_the_last_is_done_and_has_the_engine_alone() -> None:
    engaged = engine(fixed_s=5e-3, batch_s=1e-3, context_s=0, token_s=1e-5)
    outcome = simulate_closed(engaged, requests(20, prompt=1200, output=11), 1)
    np.testing.assert_allclose(outcome.ttft_s, 1200e-5)
    np.testing.assert_allclose(outcome.decode_s, 10 * 6e-3)
    np.testing.assert_allclose(outcome.arrival_s, np.arange(20) * (1200e-5 + 10 * 6e-3))
    assert outcome.mean_batch == pytest.approx(60e-3 / 72e-3)


def test_a_follower_misses_the_step_that_begins_as_its_forerunner_ends() -> None:
    # Both prompts come in one step; 11 and 21 tokens. The third comes after 10 rounds, too late
    # for the eleventh, and its prompt runs in the twelfth.
    engaged = engine(fixed_s=5e-3, batch_s=0, context_s=0, token_s=1e-5)
    output = np.array([11.0, 21.0, 2.0])
    outcome = simulate_closed(engaged, requests(3, prompt=100, output=lambda *_: output), 2)
    assert outcome.arrival_s[2] == pytest.approx(200e-5 + 10 * 5e-3)
    assert outcome.queue_s[2] == pytest.approx(5e-3)
    assert outcome.ttft_s[2] == pytest.approx(5e-3 + 5e-3 + 100e-5)


@pytest.mark.parametrize("in_flight", [1, 5, 40, 300])
def test_no_more_and_until_the_last_comes_no_fewer_are_in_flight(in_flight) -> None:
    load = requests(1_000, prompt=lognormal(300, 1), output=geometric(40))
    outcome = simulate_closed(engine(max_batch=24), load, in_flight)
    ends = np.sort(ends_s(outcome))
    assert np.all(outcome.arrival_s[:in_flight] == 0)
    np.testing.assert_allclose(outcome.arrival_s[in_flight:], ends[: 1_000 - in_flight])


def test_fewer_requests_than_may_be_in_flight_all_come_at_once() -> None:
    outcome = simulate_closed(engine(), requests(10), 50)
    assert outcome.arrival_s.tolist() == [0.0] * 10


def test_arrivals_of_the_requests_are_ignored() -> None:
    sparse, dense = (
        simulate_closed(engine(), requests(200, arrival_s=np.arange(200) * gap), 8)
        for gap in (1e-6, 1e3)
    )
    np.testing.assert_array_equal(sparse.arrival_s, dense.arrival_s)


def test_answers_of_one_token_go_round_on_prefill_alone() -> None:
    engaged = engine(token_s=1e-5, budget=512)
    outcome = simulate_closed(engaged, requests(100, prompt=512, output=1), 4)
    assert outcome.makespan_s == pytest.approx(100 * 512e-5)
    assert outcome.mean_batch == 0


def test_one_place_serves_one_after_the_other_whoever_waits() -> None:
    # Closed M/G/1: rate 1 / service whatever is in flight beyond one, time in system by Little.
    # A prompt is prefilled only once the place is free.
    engaged = engine(fixed_s=5e-3, batch_s=0, context_s=0, token_s=1e-5, max_batch=1)
    outcome = simulate_closed(engaged, requests(400, prompt=100, output=11), 6)
    service_s = 100e-5 + 10 * 5e-3
    steady = slice(10, 390)
    np.testing.assert_allclose(np.diff(outcome.arrival_s[steady]), service_s)
    np.testing.assert_allclose((outcome.ttft_s + outcome.decode_s)[steady], 6 * service_s)


def test_the_engine_never_idles_and_every_prompt_and_round_takes_its_time() -> None:
    # The balance behind the laws: time = rounds · T0(mean batch of a round) + prompts · ΔT.
    engaged = engine(fixed_s=5e-3, batch_s=1e-4, context_s=0, token_s=2e-5)
    load = requests(3_000, prompt=lognormal(300, 1), output=lognormal(60, 1))
    outcome = simulate_closed(engaged, load, 30)
    batch = np.arange(65)
    rounds = outcome.rounds_by_batch[1:].sum()
    mean_batch = outcome.rounds_by_batch @ batch / rounds
    expected = rounds * (5e-3 + 1e-4 * mean_batch) + load.prefill_tokens.sum() * 2e-5
    assert outcome.makespan_s == pytest.approx(expected)


def test_output_tokens_a_second_are_those_of_answers_that_end_in_the_span() -> None:
    load = requests(4_000, prompt=lognormal(300, 1), output=geometric(40))
    outcome = simulate_closed(engine(), load, 20)
    from_s, to_s = outcome.arrival_s[400], outcome.arrival_s[-1]
    per_s = outcome.per_s(load.output_tokens, from_s, to_s)
    inside = (ends_s(outcome) > from_s) & (ends_s(outcome) <= to_s)
    assert per_s == load.output_tokens[inside].sum() / (to_s - from_s)
    # Little: so many in flight, over the time each stays.
    stay_s = (outcome.ttft_s + outcome.decode_s)[400:-20].mean()
    assert per_s == pytest.approx(20 / stay_s * load.output_tokens.mean(), rel=0.02)


def test_nothing_in_flight_is_refused() -> None:
    with pytest.raises(AssertionError, match="nothing in flight"):
        simulate_closed(engine(), requests(5), 0)
