"""Where queueing theory is exact, the simulation keeps to it."""

import math

import ciw
import numpy as np
import pytest
from scipy import stats

from capplan.physics.percentiles import SECTIONS
from capplan.simulator.replica import simulate
from capplan.simulator.split import prefill_times_s, starts_s
from simulator.engines import engine, geometric, lognormal, requests


def interval(values, spread=4.0):
    """Mean of a correlated series, and four standard errors of it from section means."""
    means = [part.mean() for part in np.array_split(values[len(values) // 10 :], SECTIONS)]
    return np.mean(means), spread * np.std(means, ddof=1) / math.sqrt(SECTIONS)


def erlang_c(servers, load):
    """Chance to wait in M/M/c at `load` erlangs: Kleinrock, Queueing Systems I, eq. 3.41."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize(
    "output", [601, geometric(601), lognormal(601, 1.5)], ids=["fixed", "geometric", "lognormal"]
)
def test_without_fixed_time_it_is_processor_sharing_whatever_the_outputs(output) -> None:
    # A step of b·n seconds gives each of n sequences a token: M/M/1-PS with b seconds a token.
    batch_s, use = 1e-5, 0.6
    engaged = engine(fixed_s=0, batch_s=batch_s, context_s=0, token_s=0, max_batch=256)
    load = requests(60_000, prompt=1, output=output)
    tokens = (load.output_tokens - 1).mean()
    outcome = simulate(engaged, load, use / (batch_s * tokens))
    mean_s, error_s = interval(outcome.decode_s)
    assert mean_s == pytest.approx(batch_s * tokens / (1 - use), abs=error_s)
    assert outcome.mean_batch == pytest.approx(use / (1 - use), rel=error_s / mean_s)


@pytest.mark.parametrize("output", [301, lognormal(301, 1.5)], ids=["fixed", "lognormal"])
def test_with_fixed_time_the_batch_is_negative_binomial(output) -> None:
    # Birth and death with deaths at n / (K (a + b n)): the chance of n goes as
    # ρⁿ Γ(n + 1 + a/b) / (n! Γ(1 + a/b)), ρ = λ K b.
    fixed_s, batch_s, use = 5e-3, 1e-3, 0.7
    engaged = engine(fixed_s=fixed_s, batch_s=batch_s, context_s=0, token_s=0, max_batch=256)
    load = requests(60_000, prompt=1, output=output)
    tokens = (load.output_tokens - 1).mean()
    outcome = simulate(engaged, load, use / (batch_s * tokens))
    law = stats.nbinom(1 + fixed_s / batch_s, 1 - use)
    assert outcome.mean_batch == pytest.approx(law.mean(), rel=0.03)
    share = outcome.time_by_batch_s / outcome.time_by_batch_s.sum()
    np.testing.assert_allclose(np.cumsum(share), law.cdf(np.arange(len(share))), atol=0.015)


def test_with_steps_of_one_length_slots_are_erlang_servers() -> None:
    slots, use, step_s = 8, 0.85, 1e-3
    engaged = engine(fixed_s=step_s, batch_s=0, context_s=0, token_s=0, max_batch=slots)
    load = requests(100_000, prompt=1, output=geometric(400), seed=1)
    service_s = step_s * load.output_tokens.mean()
    outcome = simulate(engaged, load, use * slots / service_s)
    expected_s = erlang_c(slots, use * slots) * service_s / (slots * (1 - use))
    mean_s, error_s = interval(outcome.queue_s)
    assert mean_s == pytest.approx(expected_s, abs=error_s + step_s)
    waited = np.mean(outcome.queue_s > step_s)
    assert waited == pytest.approx(erlang_c(slots, use * slots), abs=0.03)


def test_a_pool_with_exponential_times_waits_as_erlang_says() -> None:
    rng, servers, use = np.random.default_rng(3), 3, 0.8
    arrival_s = np.cumsum(rng.exponential(1 / (use * servers), 200_000))
    wait_s = starts_s(arrival_s, rng.exponential(size=200_000), servers) - arrival_s
    mean_s, error_s = interval(wait_s)
    expected = erlang_c(servers, use * servers) / (servers * (1 - use))
    assert mean_s == pytest.approx(expected, abs=error_s)


def test_one_prefill_engine_waits_as_pollaczek_and_khinchine_say() -> None:
    engaged = engine(token_s=2e-5, budget=512)
    load = requests(200_000, prompt=lognormal(1000, 1.0), seed=2)
    service_s = prefill_times_s(engaged, load)
    np.testing.assert_allclose(service_s, 2e-5 * load.prefill_tokens)
    arrival_s = load.arrival_s * service_s.mean() / 0.7
    mean_s, error_s = interval(starts_s(arrival_s, service_s, 1) - arrival_s)
    expected_s = 0.7 * np.mean(service_s**2) / (2 * service_s.mean() * (1 - 0.7))
    assert mean_s == pytest.approx(expected_s, abs=error_s)


def test_equal_services_go_round_in_turn() -> None:
    # M/D/k: each of k servers gets every k-th customer, an E_k/D/1 queue (Crommelin, 1932).
    rng, servers = np.random.default_rng(4), 4
    arrival_s = np.cumsum(rng.exponential(1 / (0.9 * servers), 40_000))
    found = starts_s(arrival_s, np.ones(40_000), servers)
    for first in range(servers):
        own_s = arrival_s[first::servers]
        np.testing.assert_allclose(found[first::servers], starts_s(own_s, np.ones(len(own_s)), 1))


def test_a_pool_waits_as_another_program_simulates() -> None:
    # Ciw, https://github.com/CiwPython/Ciw: M/G/3 with lognormal services, its own draws.
    servers, use, customers = 3, 0.8, 40_000
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=use * servers)],
        service_distributions=[ciw.dists.Lognormal(-0.5, 1.0)],
        number_of_servers=[servers],
    )
    ciw.seed(7)
    other = ciw.Simulation(network)
    other.simulate_until_max_time(customers / (use * servers))
    records = sorted(other.get_all_records(), key=lambda record: record.arrival_date)
    other_s, other_error_s = interval(np.array([record.waiting_time for record in records]))
    rng = np.random.default_rng(5)
    arrival_s = np.cumsum(rng.exponential(1 / (use * servers), 400_000))
    wait_s = starts_s(arrival_s, rng.lognormal(-0.5, 1.0, 400_000), servers) - arrival_s
    mean_s, error_s = interval(wait_s)
    assert mean_s == pytest.approx(other_s, abs=error_s + other_error_s)


def test_littles_law_ties_batch_and_times() -> None:
    load = requests(5_000, prompt=lognormal(300, 1), output=lognormal(80, 1))
    outcome = simulate(engine(), load, 20.0)
    assert outcome.decode_s.sum() / outcome.makespan_s == pytest.approx(
        outcome.mean_batch, rel=1e-9
    )
