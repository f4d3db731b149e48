"""Waits against exact queues, factors against sampled log-normals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from capplan.physics import latency


def test_waits_are_those_of_an_mm1_queue():
    # M/M/1: mean wait rho / (mu - lambda), P(W > t) = rho exp(-(mu - lambda) t); exponential
    # service has a mean square of twice the squared mean.
    mu, lam = 10.0, 8.0
    mean, tail = latency.queue_wait(0.99, np.array(lam / mu), np.array(1 / mu), np.array(2 / mu**2))
    assert mean == pytest.approx(0.8 / 2)
    assert tail == pytest.approx(math.log(0.8 / 0.01) / 2)


def test_waits_of_equal_services_are_half_as_long_on_average():
    # M/D/1 by Pollaczek and Khinchine.
    mean, _ = latency.queue_wait(0.99, np.array(0.5), np.array(0.1), np.array(0.01))
    assert mean == pytest.approx(0.5 * 0.1 / (2 * 0.5))


def test_who_comes_to_an_idle_server_does_not_wait_and_an_overloaded_one_never_ends():
    mean, tail = latency.queue_wait(
        0.99, np.array([0.0, 1.0, 2.0]), np.full(3, 0.1), np.full(3, 0.02)
    )
    assert mean.tolist() == [0.0, np.inf, np.inf]
    assert tail.tolist() == [0.0, np.inf, np.inf]


def test_tpot_factor_is_a_percentile_of_a_product_of_lognormals():
    rng = np.random.default_rng(7)
    load, luck = 1.3, 1.4
    z99 = stats.norm.ppf(0.99)
    logs = rng.normal(0, math.log(load) / z99, 400_000)
    logs += rng.normal(0, math.log(luck) / z99, 400_000)
    for percentile in (0.5, 0.9, 0.95, 0.99):
        assert float(latency.tpot_factor(percentile, load, luck, 0.0)) == pytest.approx(
            np.exp(np.quantile(logs, percentile)), rel=0.01
        )


def test_slots_are_free_far_below_the_limit_and_scarce_at_it():
    batch, limit = np.array([10.0, 99.0]), np.array([100.0, 100.0])
    mean, tail = latency.slot_wait(0.99, batch, limit, np.array([0.2, 0.2]), np.array([1.0, 0.1]))
    assert mean[0] == tail[0] == 0.0
    assert mean[1] > 1.0
    assert tail[1] > mean[1]


def test_full_slots_wait_as_long_as_erlang_c_says():
    """Slots of an M/M/c queue: rounds that do not slow with the batch."""
    c, load = 100, 92.0
    service_s = 10.0
    poisson = stats.poisson(load)
    blocked = poisson.pmf(c) / poisson.cdf(c)
    waits = blocked / (1 - load / c * (1 - blocked))  # Erlang C from Erlang B
    spare = (c - load) / service_s
    mean, _ = latency.slot_wait(
        0.99, np.array(load), np.array(float(c)), np.array(0.0), np.array(spare)
    )
    # The normal has a thinner tail than Poisson and counts no queue: the same magnitude.
    assert mean == pytest.approx(waits / spare, rel=0.5)


def test_the_quick_normal_tail_is_scipys():
    z = np.linspace(-6, 6, 200)
    assert latency._normal_above(z) == pytest.approx(stats.norm.sf(z), abs=1.5e-4)


def test_delays_add_like_independent_normals():
    means, deviations = [np.array(1.0), np.array(2.0)], [0.3, 0.4]
    z = 2.0
    tails = [m + z * d for m, d in zip(means, deviations, strict=True)]
    assert latency.combined(means, tails) == pytest.approx(3.0 + z * 0.5)


def test_an_endless_part_makes_an_endless_sum():
    assert latency.combined([np.array(np.inf)], [np.array(np.inf)]) == np.inf


def test_medians_below_their_means_pull_the_sum_down():
    # Two delays of mean 2 and median 1: the sum of means less the root of two.
    found = latency.combined([np.array(2.0)] * 2, [np.array(1.0)] * 2)
    assert found == pytest.approx(4 - math.sqrt(2))


@given(
    st.lists(
        st.lists(st.floats(0, 100), min_size=4, max_size=4).map(sorted), min_size=1, max_size=4
    ),
    st.lists(st.floats(0, 100), min_size=4, max_size=4),
)
def test_percentiles_of_a_sum_rise_with_the_percentile(parts, means):
    used = [np.array(mean) for mean in means[: len(parts)]]
    values = [
        float(latency.combined(used, [np.array(part[place]) for part in parts]))
        for place in range(4)
    ]
    assert values == sorted(values) or values == pytest.approx(sorted(values))


def test_prompts_that_fall_into_an_answer_scatter_it_as_a_simulated_busy_period():
    # An answer of one second of rounds; prompts of 50 or 150 ms, two a second.
    rng = np.random.default_rng(9)
    rate, work = 2.0, 1.0
    lasted = []
    for _ in range(40_000):
        left, elapsed = work, 0.0
        while True:
            gap = rng.exponential(1 / rate)
            if gap >= left:
                break
            elapsed += gap
            left += rng.choice([0.05, 0.15]) - gap
        lasted.append(elapsed + left)
    share = rate * 0.1
    assert np.mean(lasted) == pytest.approx(work / (1 - share), rel=0.01)
    seen = np.var(lasted) / np.mean(lasted) ** 2
    square = (0.05**2 + 0.15**2) / 2
    found = latency.interference_variance(
        np.array(rate), np.array(square), np.array(work), np.array(share)
    )
    assert found == pytest.approx(seen, rel=0.05)
