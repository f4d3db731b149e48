"""Waits of a pool of servers against exact queues and against a queue run customer by customer."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics.latency import queue_wait
from capplan.physics.servers import PoolWait, erlang_c
from capplan.simulator.split import starts_s

TABLE = {(1, 0.5): 0.5, (2, 1.0): 1 / 3, (3, 2.0): 4 / 9}
"""M/M/k by hand: for two servers at one erlang 1 / (1 + 1 + 1) of the customers wait."""


@pytest.mark.parametrize(("servers", "load"), TABLE)
def test_the_chance_to_wait_is_erlangs(servers, load):
    assert erlang_c(servers, load) == pytest.approx(TABLE[servers, load])


@pytest.mark.parametrize("servers", [1, 2, 7, 40])
def test_the_recursion_is_the_sum(servers):
    load = 0.83 * servers
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) / (1 - load / servers)
    assert erlang_c(servers, load) == pytest.approx(last / (sum(terms) + last))


def test_thousands_of_servers_neither_overflow_nor_wait():
    assert erlang_c(5000, 2500.0) == pytest.approx(0.0, abs=1e-12)
    assert 0 < erlang_c(5000, 4950.0) < 1


def test_one_server_waits_as_pollaczek_and_khinchine_say():
    wait = PoolWait.of(1, rate_per_s=8.0, service_s=0.1, square_s2=0.015)
    mean, tail = queue_wait(0.99, np.array(0.8), np.array(0.1), np.array(0.015))
    assert wait.mean_s == pytest.approx(float(mean))
    assert wait.percentile_s(0.99) == pytest.approx(float(tail))


def test_exponential_services_wait_as_in_mmk():
    # Of those who wait, exp(-(k mu - lambda) t) wait longer than t.
    wait = PoolWait.of(3, rate_per_s=2.4, service_s=1.0, square_s2=2.0)
    assert wait.waiters_s == pytest.approx(1 / (3 - 2.4))
    assert wait.percentile_s(0.9) == pytest.approx(math.log(erlang_c(3, 2.4) / 0.1) / 0.6)


def test_equal_services_wait_half_as_long_on_average():
    wait = PoolWait.of(4, 3.2, 1.0, 1.0)
    assert wait.mean_s == pytest.approx(PoolWait.of(4, 3.2, 1.0, 2.0).mean_s / 2)


def test_an_overloaded_pool_waits_without_end_and_an_idle_one_not_at_all():
    assert PoolWait.of(2, 2.0, 1.0, 2.0).percentile_with_s(0.5, np.ones(1), np.ones(1)) == math.inf
    assert PoolWait.of(2, 0.0, 1.0, 2.0) == PoolWait(0.0, 0.0)
    assert PoolWait.of(2, 1.0, 0.0, 0.0).percentile_s(0.99) == 0.0


@given(
    servers=st.integers(1, 60),
    use=st.floats(0.01, 0.99),
    percentile=st.sampled_from([0.5, 0.9, 0.99]),
)
def test_one_more_server_never_makes_anyone_wait_longer(servers, use, percentile):
    few = PoolWait.of(servers, use * servers, 1.0, 2.0)
    more = PoolWait.of(servers + 1, use * servers, 1.0, 2.0)
    assert more.mean_s <= few.mean_s
    assert more.percentile_s(percentile) <= few.percentile_s(percentile)


def test_without_wait_the_sum_is_the_time_after_it():
    after, weights = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.4, 0.1])
    found = [PoolWait(0.0, 0.0).percentile_with_s(p, after, weights) for p in (0.4, 0.8, 0.95)]
    assert found == pytest.approx([1.0, 2.0, 3.0])


def test_the_sum_of_two_exponentials_is_gammas():
    # Everyone waits 1 s on average, and is then served 1 s on average: Erlang of two stages.
    steps = (np.arange(20_000) + 0.5) / 20_000
    found = PoolWait(1.0, 1.0).percentile_with_s(0.9, -np.log1p(-steps), np.full(20_000, 5e-5))
    assert math.exp(-found) * (1 + found) == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("cv", [0.5, 0.8, 1.0])
@pytest.mark.parametrize(("servers", "use"), [(2, 0.7), (3, 0.85), (10, 0.85)])
def test_wait_and_service_together_are_within_five_percent_of_a_queue_run(servers, use, cv):
    rng, count, log_variance = np.random.default_rng(5), 2_000_000, math.log1p(cv**2)
    service_s = rng.lognormal(-log_variance / 2, math.sqrt(log_variance), count)
    arrival_s = np.cumsum(rng.exponential(1 / (use * servers), count))
    together_s = (starts_s(arrival_s, service_s, servers) - arrival_s + service_s)[count // 10 :]
    wait = PoolWait.of(servers, use * servers, service_s.mean(), np.mean(service_s**2))
    nodes = np.quantile(service_s, (np.arange(1000) + 0.5) / 1000)
    modelled = wait.percentile_with_s(0.99, nodes, np.full(1000, 1e-3))
    assert modelled == pytest.approx(np.quantile(together_s, 0.99), rel=0.05)
