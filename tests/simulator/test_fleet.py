"""Replicas behind a router, and pools split by phase."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics.engine import Requests
from capplan.simulator.fleet import simulate_fleet
from capplan.simulator.replica import simulate
from capplan.simulator.split import prefill_times_s, simulate_split, starts_s
from simulator.engines import engine, lognormal, requests

BY_REQUEST = (
    "arrival_s",
    "prefill_tokens",
    "cached_tokens",
    "output_tokens",
    "traffic_class",
    "kind",
    "noise",
)


def every_third(load: Requests, first: int) -> Requests:
    assert set(BY_REQUEST) < {field.name for field in fields(Requests)}
    return replace(load, **{name: getattr(load, name)[first::3] for name in BY_REQUEST})


def test_round_robin_is_as_many_replicas_each_with_its_share() -> None:
    load = requests(3_000, prompt=lognormal(300, 1), output=lognormal(60, 1))
    together = simulate_fleet(engine(), load, 60.0, 3)
    for first in range(3):
        alone = simulate(engine(), every_third(load, first), 60.0)
        np.testing.assert_array_equal(together.ttft_s[first::3], alone.ttft_s)
        np.testing.assert_array_equal(together.decode_s[first::3], alone.decode_s)


def test_least_loaded_waits_less_than_round_robin_than_one_alone() -> None:
    load = requests(40_000, prompt=lognormal(600, 1), output=lognormal(60, 1))
    alone, turn, least = (
        np.percentile(outcome.decode_s / load.output_tokens, 99)
        for outcome in (
            simulate(engine(), load, 30.0),
            simulate_fleet(engine(), load, 240.0, 8, "round-robin"),
            simulate_fleet(engine(), load, 240.0, 8, "least-loaded"),
        )
    )
    assert least < turn < alone


def test_a_least_loaded_fleet_of_single_places_is_one_queue() -> None:
    # With 1 place each, joining the shortest queue at low load never queues while one is idle.
    load = requests(200, output=50, prompt=16, arrival_s=np.arange(200.0))
    outcome = simulate_fleet(engine(max_batch=1), load, 3.0 / 0.3, 4, "least-loaded")
    assert outcome.queue_s.max() < 1e-12


def test_a_split_request_alone_takes_prefill_transfer_and_steps() -> None:
    engaged = engine(fixed_s=5e-3, batch_s=1e-3, context_s=0, token_s=1e-5)
    outcome = simulate_split(engaged, engaged, requests(1, prompt=1000, output=11), 1.0, 2, 0.05)
    assert outcome.ttft_s == pytest.approx([1000e-5 + 0.05 + 1e-5])
    assert outcome.decode_s == pytest.approx([10 * 6e-3])


def test_splitting_takes_prefill_out_of_the_stream() -> None:
    load = requests(10_000, prompt=lognormal(800, 1), output=lognormal(60, 1))
    whole = simulate(engine(), load, 25.0)
    split = simulate_split(engine(), engine(), load, 25.0, 1, 0.01)
    assert split.interference_s.sum() < 0.01 * whole.interference_s.sum()
    parts_s = split.target_s + split.draft_s + split.interference_s
    np.testing.assert_allclose(parts_s, split.decode_s, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(split.rounds, load.output_tokens - 1)
    assert np.percentile(split.decode_s, 99) < np.percentile(whole.decode_s, 99)
    floor_s = split.queue_s + prefill_times_s(engine(), load) + 0.01
    assert np.all(split.ttft_s >= floor_s)


def test_a_least_loaded_fleet_serves_all_through_preemption() -> None:
    load = requests(2_000, prompt=lognormal(200, 0.5), output=lognormal(150, 1))
    outcome = simulate_fleet(engine(cache_tokens=12_000), load, 120.0, 3, "least-loaded")
    assert outcome.preemptions.sum() > 0
    assert np.all(outcome.decode_s >= 0)
    assert outcome.decode_s.sum() == pytest.approx(
        3 * outcome.mean_batch * outcome.makespan_s, rel=0.2
    )


def test_prefill_engines_without_number_let_nobody_wait() -> None:
    load = requests(2_000, prompt=lognormal(800, 1), output=lognormal(60, 1))
    ample = simulate_split(engine(), engine(), load, 25.0, None, 0.01)
    many = simulate_split(engine(), engine(), load, 25.0, 2_000, 0.01)
    assert np.all(ample.queue_s == 0)
    np.testing.assert_array_equal(ample.ttft_s, many.ttft_s)
    np.testing.assert_array_equal(ample.decode_s, many.decode_s)


def test_with_prompts_that_take_no_time_a_split_replica_is_one_that_decodes() -> None:
    free = engine(token_s=0.0)
    load = requests(4_000, prompt=lognormal(300, 1), output=lognormal(60, 1))
    split = simulate_split(free, free, load, 60.0, None, 0.0)
    decoding = replace(
        load,
        prefill_tokens=np.ones(4_000),
        cached_tokens=load.prefill_tokens + load.cached_tokens - 1,
    )
    alone = simulate(free, decoding, 60.0)
    np.testing.assert_array_equal(split.ttft_s, alone.ttft_s)
    np.testing.assert_array_equal(split.decode_s, alone.decode_s)


def test_contexts_take_turns_on_their_way() -> None:
    # Three prompts come at once to as many engines; each context travels for a second.
    quick = engine(fixed_s=0, batch_s=0, context_s=0, token_s=1e-9)
    load = requests(3, prompt=500, output=1, arrival_s=[0.0, 0.0, 0.0])
    outcome = simulate_split(quick, quick, load, 1.0, None, 1.0)
    assert sorted(outcome.ttft_s) == pytest.approx([1.0, 2.0, 3.0], abs=1e-5)


@given(
    gaps=st.lists(st.floats(0, 3), min_size=1, max_size=60),
    servers=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_whoever_comes_first_takes_the_server_that_is_free_first(gaps, servers, seed) -> None:
    arrival_s = np.cumsum(gaps)
    service_s = np.random.default_rng(seed).exponential(2.0, len(gaps))
    found, free = starts_s(arrival_s, service_s, servers), [-np.inf] * servers
    for arrival, service, start in zip(arrival_s, service_s, found, strict=True):
        soonest = free.index(min(free))
        assert start == max(arrival, free[soonest])
        free[soonest] = start + service
    assert np.all(starts_s(arrival_s, service_s, servers + 1) <= found + 1e-9)
