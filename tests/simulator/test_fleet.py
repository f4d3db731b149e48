"""Replicas behind a router, and pools split by phase."""

from dataclasses import fields, replace

import numpy as np
import pytest

from capplan.physics.engine import Requests
from capplan.simulator.fleet import simulate_fleet
from capplan.simulator.replica import simulate
from capplan.simulator.split import prefill_times_s, simulate_split
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
    assert split.interference_s < 0.01 * whole.interference_s
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
