"""A published closed-loop benchmark: fitted up to 50 requests in flight, predicted beyond.

Llama-3.3-70B in FP8 on two H100, prompts of 5000 tokens and answers of 500, NVIDIA NIM 1.8.0:
https://docs.nvidia.com/nim/benchmarking/llm/1.0.0/performance. Requests in flight, and means of
time to first token [ms], time between tokens [ms] and output tokens a second.

All requests are alike, so they go in lockstep. Nothing is known of how this engine cuts prompts:
one a step is assumed. Three numbers are fitted, T0 = a + b B and ΔT, and one is given: 86 sequences
decode at most, read off the saturated rows as output tokens a second times time between tokens.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

from capplan.physics.closed_loop import ByBatch, lockstep
from capplan.simulator.closed import simulate_closed
from simulator.engines import engine, requests

PROMPT, ANSWER, PLACES = 5000, 500, 86
FITTED = {
    1: (406.77, 18.58, 51.67),
    5: (546.7, 21.83, 218.48),
    25: (688.69, 38.75, 623.4),
    50: (834.51, 59.73, 814.37),
}
PREDICTED = {
    100: (7996.25, 92.91, 917.26),
    150: (34794.22, 92.86, 920.9),
    200: (61680.22, 93.06, 920.54),
    250: (88605.32, 93.2, 920.12),
}
TTFT, BETWEEN, TOKENS = range(3)


def by_law(numbers, in_flight: int) -> np.ndarray:
    fixed_s, batch_s, prefill_s = numbers
    batch, one = np.arange(PLACES + 1), np.ones(PLACES + 1)
    round_s = np.where(batch > 0, fixed_s + batch_s * batch, 0.0)
    found = lockstep(ByBatch((ANSWER - 1) * one, round_s, prefill_s * one, one, one), in_flight)
    return np.array([1e3 * found.ttft_s, 1e3 * found.round_s, ANSWER * found.rate_per_s])


def by_simulation(numbers, in_flight: int) -> np.ndarray:
    fixed_s, batch_s, prefill_s = numbers
    engaged = replace(
        engine(
            fixed_s=fixed_s,
            batch_s=batch_s,
            context_s=0,
            budget=PROMPT + PLACES,
            max_batch=PLACES,
        ),
        # One prompt a step, whole.
        chunk_tokens=np.array([0.0, PROMPT]),
        chunk_s=np.broadcast_to([0.0, prefill_s], (1, PLACES + 1, 2)),
    )
    load = requests(12 * in_flight, prompt=PROMPT, output=ANSWER)
    outcome = simulate_closed(engaged, load, in_flight)
    steady = slice(3 * in_flight, 11 * in_flight)
    ttft_s, decode_s = outcome.ttft_s[steady].mean(), outcome.decode_s[steady].mean()
    # Little's law: steps of the train make counts over a span uneven.
    per_s = in_flight * ANSWER / (ttft_s + decode_s)
    return np.array([1e3 * ttft_s, 1e3 * decode_s / (ANSWER - 1), per_s])


def fit(*columns: int) -> np.ndarray:
    """Least squares of relative errors, all rows and columns alike; nothing below nought."""

    def errors(numbers):
        rows = [by_law(numbers, n) / measured - 1 for n, measured in FITTED.items()]
        return np.concatenate([row[list(columns)] for row in rows])

    found = least_squares(errors, [0.02, 1e-4, 0.4], x_scale=[1e-2, 1e-4, 0.1], bounds=(0, np.inf))
    return np.array(found.x)


BOUNDS = np.array([0.06, 0.02, 0.02])


def test_the_ceiling_is_what_the_saturated_rows_decode() -> None:
    decoding = [row[TOKENS] * row[BETWEEN] / 1e3 for row in PREDICTED.values()]
    assert round(np.mean(decoding)) == PLACES


@pytest.mark.parametrize("columns", [(TTFT, BETWEEN, TOKENS), (BETWEEN, TOKENS)])
@pytest.mark.parametrize("predict", [by_law, by_simulation])
def test_more_in_flight_than_were_fitted_are_predicted(predict, columns) -> None:
    numbers = fit(*columns)
    for in_flight, measured in PREDICTED.items():
        error = predict(numbers, in_flight) / measured - 1
        assert np.all(np.abs(error) <= BOUNDS), (in_flight, error)


@pytest.mark.parametrize("predict", [by_law, by_simulation])
def test_the_fitted_rows_are_met_but_for_the_wait_before_the_first_token(predict) -> None:
    # Found: 1.3 % between tokens and 0.6 % of tokens a second; TTFT is off by up to 19 %, since
    # real requests neither keep the train quite together nor mingle.
    numbers = fit(TTFT, BETWEEN, TOKENS)
    for in_flight, measured in FITTED.items():
        error = predict(numbers, in_flight) / measured - 1
        assert np.all(np.abs(error) <= [0.2, 0.015, 0.01]), (in_flight, error)


def test_what_was_fitted_is_possible() -> None:
    # Reading two GPUs' 35 GB of weights takes 10 ms at 3.35 TB/s; the cache of 5250 tokens at
    # 164 kB, half of it on each, 0.13 ms. Prompts alone took 407 ms.
    fixed_s, batch_s, prefill_s = fit(TTFT, BETWEEN, TOKENS)
    assert 0.010 < fixed_s < 0.020
    assert 1.3e-4 < batch_s < 2.6e-4
    assert 0.3 < prefill_s < 0.41
