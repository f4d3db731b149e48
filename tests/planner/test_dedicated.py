"""Prompts on engines of their own: transfers, decode replicas, and the number of engines."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from capplan.errors import InfeasibleError, InputError
from capplan.files.reader import read
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve, binding, capacity_of_mix
from capplan.planner.dedicated import prefill_gpu_w, prefill_pool, waiting
from capplan.planner.dedicated_screen import screened_prefill_pool
from capplan.planner.demand import demand
from capplan.planner.handover import Handover
from capplan.planner.last_rate import capacity
from capplan.planner.trial import QUICK, Stage, Trial
from capplan.records.fleet import Fleet, Rules
from capplan.records.profile import Profile
from capplan.simulator.arrivals import poisson
from capplan.simulator.replica import simulate
from capplan.simulator.split import prefill_times_s, simulate_split, starts_s
from straight import make_fleet, make_forecast, make_profile

A_S, B_S = 0.010, 0.0001
NETWORK = 4e9
"""Of a node: a prompt token's 1000 bytes travel in a quarter of a microsecond."""
ROOT = Path(__file__).resolve().parents[2]


def fleet(network_bytes_per_s: float | None = NETWORK) -> Fleet:
    bare = make_fleet()
    node = bare.nodes["node"].model_copy(update={"network_bytes_per_s": network_bytes_per_s})
    return bare.model_copy(update={"nodes": {"node": node}})


def decoding(
    profile: Profile, *, network: float = NETWORK, policy: str = "plain", **forecast: object
) -> tuple[Candidate, Curve]:
    """A decode replica of a profile behind prefill engines of the same."""
    handover = Handover.of(profile, profile, fleet(network))
    return solved(profile, handover, policy, **forecast)


def solved(
    profile: Profile, handover: Handover | None, policy: str = "plain", **forecast: object
) -> tuple[Candidate, Curve]:
    asked = demand(make_forecast(**forecast))  # type: ignore[arg-type]
    drafter = None if policy == "plain" else "eagle"
    candidate = Candidate.of(profile, drafter, asked, handover=handover)
    return candidate, policies.curves(policy, candidate.replica, candidate.constraints)[0]


def trial(candidate: Candidate, curve: Curve, seed: int = 1) -> Trial:
    return Trial.of(
        candidate, curve, 0, Stage(simulate, simulate_split, starts_s, poisson, seed), QUICK
    )


def limits(ttft_s: float = 1000.0, **tpot: float) -> dict[str, float]:
    return {"ttft_p99_s": ttft_s, **(tpot or {"tpot_p50_s": 100.0})}


def test_a_context_travels_over_the_part_of_the_network_that_a_replica_has():
    whole, half = make_profile(gpus=8), make_profile(gpus=4)
    together = Handover.of(whole, whole, fleet())
    assert together.transfer_s(1000.0) == pytest.approx(1000 * 1000 / 4e9)
    for prefill, decode in ((whole, half), (half, whole), (half, half)):
        assert Handover.of(prefill, decode, fleet()).transfer_s(1000.0) == pytest.approx(
            2 * 1000 * 1000 / 4e9
        )
    two_nodes = make_profile(gpus=16)
    assert Handover.of(two_nodes, two_nodes, fleet()).transfer_s(1000.0) == pytest.approx(1.25e-4)


def test_state_beside_keys_and_values_travels_too():
    profile = make_profile()
    memory = profile.memory.model_copy(update={"state_bytes_per_sequence": 4e6})
    handover = Handover.of(profile, profile.model_copy(update={"memory": memory}), fleet())
    assert handover.transfer_s(0.0) == pytest.approx(1e-3)


def test_a_network_that_nobody_stated_is_asked_for():
    with pytest.raises(InputError, match=r"nodes\.node\.network_bytes_per_s"):
        Handover.of(make_profile(), make_profile(), fleet(None))


def test_contexts_of_another_model_or_precision_are_refused():
    here, there = make_profile(), make_profile()
    model = there.model.model_copy(update={"name": "other"})
    deployment = there.deployment.model_copy(update={"kv_precision": "fp8"})
    other = there.model_copy(update={"model": model, "deployment": deployment})
    with pytest.raises(InputError) as refused:
        Handover.of(other, here, fleet())
    assert [c.key for c in refused.value.complaints] == ["model.name", "deployment.kv_precision"]


def test_a_prompt_that_a_prefill_engine_cannot_hold_is_refused():
    small = make_profile(kv_capacity_tokens=50_000.0).model_copy(update={"name": "small"})
    handover = Handover.of(small, make_profile(), fleet())
    with pytest.raises(InputError, match="cache holds prompts up to 50000 tokens in profile small"):
        solved(make_profile(), handover)


def test_prompts_alone_take_what_the_simulator_says():
    # Own context enters chunk by chunk there, through its mean here.
    profile = read(ROOT / "profiles/h200-sxm/llama-3.1-70b-fp8-tp4.yaml", Profile)
    handover = Handover.of(profile, profile, read(ROOT / "fleets/dgx-h200.yaml", Fleet))
    rng = np.random.default_rng(1)
    fresh = np.concatenate([[1.0, 64.0, 8192.0, 8193.0], rng.uniform(1, 60_000, 200)])
    cached = np.concatenate([np.zeros(4), rng.uniform(0, 60_000, 200)])
    _, curve = decoding(make_profile())
    drawn = trial(*decoding(make_profile())).drawn
    asked = replace(drawn, arrival_s=fresh, prefill_tokens=fresh, cached_tokens=cached)
    simulated_s = prefill_times_s(handover.engine(), asked)
    assert handover.prefill_s(fresh, cached) == pytest.approx(simulated_s, rel=0.03)
    assert curve.replica.load.prefilled_s == pytest.approx(1e-5 * 256)


def test_the_curve_is_the_closed_form_without_prefill():
    # lambda(s) = (1 - a / s) / (b m): 10 ms of prefill a request would take a third of it.
    _, curve = decoding(make_profile(), prompt=1000.0, objectives=limits(tpot_p50_s=0.030))
    rate, _ = capacity_of_mix(curve, 0)
    assert rate == pytest.approx((1 - A_S / 0.030) / (B_S * 100), rel=5e-3)


@pytest.mark.parametrize("prompt", [256.0, 2000.0])
def test_a_request_alone_waits_for_prefill_transfer_and_one_step(prompt):
    candidate, curve = decoding(
        make_profile(), network=8e7, prompt=prompt, objectives=limits() | {"ttft_p50_s": 1.0}
    )
    before_s = 1e-5 * prompt + prompt * 1000 / 8e7
    # The step of an engine that decodes nothing is that of the smallest prompt measured.
    found = trial(candidate, curve)
    assert float(np.median(found.run(1e-3).ttft_s)) == pytest.approx(before_s + 2.56e-3, rel=1e-3)
    alone = candidate.estimates[0, "ttft_p50_s"][0, 0, 0]
    # Modelled, it meets a round under way, half of it on average.
    assert alone == pytest.approx(before_s + 1.5 * A_S, rel=0.02)


def test_verification_never_starves_a_replica_that_does_not_prefill():
    # 400 tokens a step; at batch 64 four drafts leave 80 of them, too few for prompts of 2000.
    profile = make_profile(draft_s=lambda *_: 0.0, max_batched_tokens=400, max_batch=64)
    asked = {"policy": "always:4", "prompt": 2000.0, "output": 101.0, "objectives": limits()}
    _, mixed = solved(profile, None, **asked)
    _, split = decoding(profile, **asked)
    stopped = [binding(curve, 0, capacity_of_mix(curve, 0)[1]).kind for curve in (mixed, split)]
    assert stopped == ["prefill", "engine limit"]
    assert capacity_of_mix(split, 0)[0] > 2 * capacity_of_mix(mixed, 0)[0]
    starved = next(one.used for one in split.constraints if one.binding.kind == "prefill")
    assert np.all(starved[0, 1:, split.replica.batch <= 64] < 0.2)


def test_prompts_that_cost_nothing_decode_alike_split_or_not():
    profile = make_profile(prefill_s_per_token=1e-11)
    asked = {"output": 200.0, "cv": 0.8, "objectives": limits(1.0, tpot_p99_s=0.030)}
    rates = [
        capacity(trial(*solved(profile, handover, **asked))).rate_per_s
        for handover in (
            None,
            replace(Handover.of(profile, profile, fleet()), transfer_s_per_token=0.0),
        )
    ]
    assert rates[1] == pytest.approx(rates[0], rel=0.01)


@pytest.mark.parametrize("policy", ["plain", "always:2"])
def test_a_simulated_decode_replica_serves_what_its_curve_says(policy):
    profile = make_profile(
        step_s=lambda b, q: (A_S + B_S * b) * (1 + 0.05 * (q - 1)), draft_s=lambda _, g: 0.001 * g
    )
    asked = {"prompt": 1000.0, "output": 400.0, "objectives": limits(1.0, tpot_p50_s=0.020)}
    candidate, curve = decoding(profile, policy=policy, **asked)
    found = capacity(trial(candidate, curve))
    assert found.rate_per_s == pytest.approx(capacity_of_mix(curve, 0)[0], rel=0.05)


def test_a_slow_network_binds_before_anything_else():
    # 1 MB a context over 20 MB/s: 50 ms each, twenty a second and no more.
    candidate, curve = decoding(make_profile(), network=2e7, prompt=1000.0, objectives=limits(1.0))
    rate, stop = capacity_of_mix(curve, 0)
    assert rate < 20
    assert binding(curve, 0, stop).kind in ("network", "objective")
    assert 15 < capacity(trial(candidate, curve)).rate_per_s < 20
    _, patient = decoding(make_profile(), network=2e7, prompt=1000.0, objectives=limits(1e9))
    assert binding(patient, 0, capacity_of_mix(patient, 0)[1]).kind == "network"


CHAT = {"prompt": 4000.0, "output": 200.0, "cv": 0.8}
"""40 ms of prefill a prompt."""


def sized(ttft_s: float, rate: float, rules: Rules, percentile: str = "p99"):
    asked = {f"ttft_{percentile}_s": ttft_s, "tpot_p50_s": 0.030}
    candidate, curve = decoding(make_profile(max_batched_tokens=65536), **CHAT, objectives=asked)
    tried = trial(candidate, curve)
    own = capacity_of_mix(curve, 0)[0] / 2
    decoded = tried.run(own)
    pool = prefill_pool(tried, decoded, rate, rules, starts_s)
    arrival_s = tried.drawn.arrival_s * (1 - rules.headroom) / rate
    seen = waiting(decoded, arrival_s, pool.replicas_at_peak, starts_s)
    screened = screened_prefill_pool(curve, candidate.demand, 0, own, rate, rules)
    return tried, pool, seen, screened


BARE = Rules(headroom=0.0, spare_replicas=0)


def test_few_prompts_need_one_engine_and_patient_ones_no_more_than_keep_up():
    _, pool, _, screened = sized(10.0, 1.0, BARE)
    assert pool.replicas == screened.replicas == 1
    assert pool.replicas_unrounded == pytest.approx(0.04, rel=0.02)
    assert pool.utilisation == pytest.approx(pool.replicas_unrounded)
    assert pool.transfer_mean_s == pytest.approx(4000 * 1000 / NETWORK, rel=0.02)
    _, pool, _, screened = sized(1000.0, 200.0, BARE)
    assert pool.replicas == screened.replicas == math.ceil(200 * 0.04 / 0.95)


def test_one_engine_fewer_would_break_the_objective():
    tried, pool, seen, _ = sized(0.21, 200.0, BARE)
    assert pool.replicas > math.ceil(200 * 0.04 / 0.95)
    assert tried.value_s(seen, 0, "ttft_p99_s") <= 0.21
    arrival_s = tried.drawn.arrival_s / 200
    wait_s = starts_s(arrival_s, seen.prefill_alone_s, pool.replicas - 1) - arrival_s
    fewer = replace(seen, ttft_s=seen.ttft_s - seen.queue_s + wait_s)
    assert tried.value_s(fewer, 0, "ttft_p99_s") > 0.21


def test_stricter_objectives_and_headroom_need_more_engines():
    strict = [sized(ttft_s, 200.0, BARE)[1].replicas for ttft_s in (0.6, 0.3, 0.22)]
    assert strict == sorted(strict)
    assert strict[0] < strict[-1]
    careful = sized(0.3, 200.0, Rules(headroom=0.2, spare_replicas=2))[1]
    planned = sized(0.3, 250.0, BARE)[1]
    assert careful.replicas_at_peak == planned.replicas_at_peak
    assert careful.replicas == careful.replicas_at_peak + 2
    assert careful.utilisation == pytest.approx(0.8 * planned.utilisation)


@pytest.mark.parametrize(
    ("rate", "percentile", "ttft_s"),
    [
        (50.0, "p99", 0.3),
        (200.0, "p99", 0.25),
        (100.0, "p50", 0.05),
        (1000.0, "p99", 0.22),
    ],
)
def test_the_screen_is_within_an_engine_of_the_simulation(rate, percentile, ttft_s):
    _, pool, _, screened = sized(ttft_s, rate, BARE, percentile)
    assert abs(screened.replicas - pool.replicas) <= 1


def test_what_prefill_alone_breaks_no_number_of_engines_keeps():
    candidate, curve = decoding(make_profile(), **CHAT, objectives=limits(0.02))
    tried = trial(candidate, curve)
    with pytest.raises(InfeasibleError, match="ttft_p99 of chat"):
        prefill_pool(tried, tried.run(1.0), 10.0, BARE, starts_s)
    with pytest.raises(InfeasibleError, match="ttft_p99 of chat"):
        screened_prefill_pool(curve, candidate.demand, 0, 1.0, 10.0, BARE)


def test_prefill_engines_draw_watts_for_the_part_of_the_time_they_work():
    profile = make_profile(prefill_w=650.0)
    candidate, curve = decoding(profile, rates=(10.0, 50.0), **CHAT)
    pool = screened_prefill_pool(curve, candidate.demand, 0, 1.0, 50.0, BARE)
    watts = prefill_gpu_w(pool, curve.replica.load)
    use = np.array([0.4, 2.0]) / pool.replicas
    assert watts == pytest.approx(100 + use * 550, rel=1e-3)
    assert prefill_gpu_w(pool, decoding(make_profile(power_w=500.0))[1].replica.load) is None
