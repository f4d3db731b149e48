"""The batch against queues that are solved exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics import equilibrium


def test_affine_rounds_give_the_law_of_processor_sharing():
    # T = a + b B and prefill d: with rho = lambda (b K + d), Little gives
    # B = lambda K a / (1 - rho) and a round of a / (1 - rho).
    a, b, d, rounds, rate = 0.010, 0.0002, 0.05, 100.0, 8.0
    rho = rate * (b * rounds + d)
    batch = rate * rounds * a / (1 - rho)
    round_s = a + b * batch
    assert equilibrium.rate_per_s(batch, rounds, round_s, d) == pytest.approx(rate)
    assert equilibrium.stretched_round_s(round_s, rate, d) == pytest.approx(a / (1 - rho))


@given(st.floats(0.1, 500), st.floats(1, 1e4), st.floats(1e-4, 1), st.floats(0, 10))
def test_little_holds_and_prefill_never_fills_the_engine(batch, rounds, round_s, prefill_s):
    rate = float(equilibrium.rate_per_s(batch, rounds, round_s, prefill_s))
    assert rate * prefill_s < 1
    stretched = float(equilibrium.stretched_round_s(round_s, rate, prefill_s))
    assert rate * rounds * stretched == pytest.approx(batch, rel=1e-6)


def test_the_balance_is_what_a_simulated_replica_settles_at():
    """A token-level replica, written here and nowhere else: one round at a time, Poisson arrivals.

    It is checked at a light prefill load, where the mean-value relation is close to exact.
    """
    rng = np.random.default_rng(6)
    rate, rounds, d = 5.0, 60, 0.004
    clock, waiting, running, prefilled = 0.0, rng.exponential(1 / rate), [], 0
    area, start = 0.0, 200.0
    while clock < 6000.0:
        step = (0.010 + 0.0001 * len(running) + d * prefilled) if running or prefilled else 0.0
        prefilled = 0
        if step == 0.0:
            clock = waiting
        else:
            if clock > start:
                area += len(running) * step
            clock += step
            running = [left - 1 for left in running if left > 1]
        while waiting <= clock:
            running.append(rounds)
            prefilled += 1
            waiting += rng.exponential(1 / rate)
    seen = area / (clock - start)
    predicted = np.interp(
        rate,
        [
            float(equilibrium.rate_per_s(b, rounds, 0.010 + 0.0001 * b, d))
            for b in np.linspace(0.1, 50, 2000)
        ],
        np.linspace(0.1, 50, 2000),
    )
    assert seen == pytest.approx(predicted, rel=0.05)
