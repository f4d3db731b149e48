"""A replica's capacity against closed forms for straight-line step times."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import InfeasibleError
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve, _balance, capacity
from capplan.planner.chain import Asked, outcomes
from capplan.planner.demand import demand
from capplan.records.plan import PolicyPlan
from capplan.records.profile import Profile
from straight import make_fleet, make_forecast, make_profile

A_S, B_S = 0.010, 0.0001


def planned(policy: str, profile: Profile, **forecast: object) -> PolicyPlan:
    """The policy by the balance alone."""
    asked = make_forecast(**forecast)  # type: ignore[arg-type]
    try:
        found, _ = outcomes(asked, [profile], make_fleet(), Asked((policy,)))
    except InfeasibleError as error:
        return PolicyPlan(policy=policy, infeasible=str(error))
    return found[0].plan


def limits(tpot_s: float = 100.0, ttft_s: float = 1000.0) -> dict[str, float]:
    return {"ttft_p99_s": ttft_s, "tpot_p99_s": tpot_s}


def test_plain_capacity_is_the_closed_form():
    # lambda(s) = (1 - a / s) / (b m + d) for T = a + b B, m = 100 rounds, 1 ms of prefill.
    # On the median, where the chance of prompts that fall into an answer does not enter.
    objectives = {"ttft_p99_s": 1000.0, "tpot_p50_s": 0.030}
    found = planned("plain", make_profile(), objectives=objectives)
    expected = (1 - A_S / 0.030) / (B_S * 100 + 0.001)
    assert found.pools
    assert found.pools[0].service.capacity_per_s == pytest.approx(expected, rel=2e-3)
    assert found.pools[0].service.at_capacity.batch == pytest.approx(
        expected * 100 * 0.030, rel=2e-3
    )
    assert found.pools[0].service.binding.quantity == "tpot_p50_s"


@pytest.mark.parametrize("objective_s", [0.008, 0.011, 0.014])
def test_speculative_capacity_is_the_closed_form(objective_s):
    # Four drafts of chance 0.8: 3.3616 tokens. Verification at efficiency 0.8, 4 ms of drafting.
    # The objective is on the median, where the luck of acceptance does not enter.
    profile = make_profile(
        step_s=lambda b, q: (A_S + B_S * b) * (1.0 if q == 1 else 1.25),
        draft_s=lambda _, g: 0.001 * g,
    )
    tokens = 3.3616
    a, b = 1.25 * A_S + 0.004, 1.25 * B_S
    expected = (1 - a / (tokens * objective_s)) / (b * 100 / tokens + 0.001)
    objectives = {"ttft_p99_s": 1000.0, "tpot_p50_s": objective_s}
    found = planned("always:4", profile, objectives=objectives)
    assert found.pools
    assert found.pools[0].service.capacity_per_s == pytest.approx(expected, rel=3e-3)


def test_no_acceptance_with_free_drafting_and_verification_is_plain():
    profile = make_profile(draft_s=lambda *_: 0.0, shares=(0.0, 0.0, 0.0, 0.0))
    plain, always = planned("plain", profile), planned("always:4", profile)
    assert plain.pools
    assert always.pools
    assert always.pools[0].at_peak.batch == pytest.approx(plain.pools[0].at_peak.batch)
    assert always.pools[0].at_peak.tpot_mean_s == pytest.approx(plain.pools[0].at_peak.tpot_mean_s)
    assert always.placement == plain.placement


def test_speculation_shrinks_the_batch_at_the_same_load():
    # Little: B = lambda K T. With K a third and the same rounds, less than a third remains.
    profile = make_profile(draft_s=lambda *_: 0.0)
    plain = planned("plain", profile, rates=(40.0,))
    always = planned("always:4", profile, rates=(40.0,))
    assert plain.pools
    assert always.pools
    assert always.pools[0].at_peak.batch < plain.pools[0].at_peak.batch / 3.3616


def test_memory_binds_where_the_cache_is_small():
    # 101 + 50 tokens of context a sequence (answers of one length: half is written), z of 2.33
    # on the uniform position's deviation of 100 / sqrt(12).
    profile = make_profile(kv_capacity_tokens=10_000.0)
    found = planned("plain", profile, objectives=limits())
    mean, deviation = 150.0, 100 / math.sqrt(12)
    root = (-2.33 * deviation + math.sqrt((2.33 * deviation) ** 2 + 4 * mean * 10_000)) / (2 * mean)
    assert found.pools
    assert found.pools[0].service.binding.kind == "memory"
    # The last batch of the grid before it, at most five per cent below.
    assert 0.95 * root**2 <= found.pools[0].service.at_capacity.batch <= root**2


def test_look_ahead_slots_take_cache():
    small = {"kv_capacity_tokens": 10_000.0, "draft_s": lambda *_: 0.0}
    profile = make_profile(**small)  # type: ignore[arg-type]
    plain = planned("plain", profile, objectives=limits())
    always = planned("always:4", profile, objectives=limits())
    assert plain.pools
    assert always.pools
    assert always.pools[0].service.batch_limits.memory < plain.pools[0].service.batch_limits.memory


def test_the_engines_batch_binds():
    found = planned("plain", make_profile(max_batch=40), objectives=limits())
    assert found.pools
    assert found.pools[0].service.binding.kind == "engine limit"
    assert 0.95 * 40 <= found.pools[0].service.at_capacity.batch <= 40


def test_nothing_is_planned_beyond_the_largest_measured_batch():
    found = planned("plain", make_profile(max_batch=1000), objectives=limits())
    assert found.pools
    assert found.pools[0].service.binding.kind == "measured batch"
    assert found.pools[0].service.at_capacity.batch == pytest.approx(256)


def test_verification_tokens_starve_prefill_of_its_budget():
    # 400 tokens a step; at batch 64 four drafts leave 80 of them for prompts, plain 336.
    profile = make_profile(draft_s=lambda *_: 0.0, max_batched_tokens=400)
    ask = {"prompt": 1000.0, "objectives": limits()}
    plain = planned("plain", profile, **ask)
    always = planned("always:4", profile, **ask)
    assert plain.pools
    assert always.pools
    assert always.pools[0].service.binding.kind == "prefill"
    # Where it binds, arriving prompt tokens are what the budget leaves: C - B q = lambda p T.
    point = always.pools[0].service.at_capacity
    room = 400 - 5 * point.batch
    assert point.rate_per_s * 1000 * point.round_s == pytest.approx(room, rel=0.1)


def test_rounds_that_grow_as_fast_as_the_batch_saturate():
    profile = make_profile(step_s=lambda b, _: 0.001 * b)
    found = planned("plain", profile, objectives=limits())
    assert found.pools
    assert found.pools[0].service.binding.kind == "saturation"


def test_one_request_too_slow_is_infeasible_whatever_the_rate():
    for rates in ((0.001,), (1000.0,)):
        found = planned("plain", make_profile(), rates=rates, objectives=limits(0.005))
        assert found.placement is None
        assert found.infeasible is not None
        assert "one request alone misses tpot_p99 of chat" in found.infeasible
        # T(1) = 10.1 ms.
        assert "nearest feasible tpot_p99_s: 0.0101" in found.infeasible


def test_a_context_that_does_not_fit_once_is_infeasible():
    found = planned("plain", make_profile(kv_capacity_tokens=210.0))
    # 150 tokens on average and 2.33 times 100 / sqrt(12) on top.
    assert (
        "plain: not even one request fits: a sequence, with room for longer ones, holds 217 tokens "
        "and the cache 210; nearest feasible kv_capacity_tokens: 217"
    ) in (found.infeasible or "")


def test_a_long_prompt_costs_its_own_chunks_first():
    # 8,000 tokens in chunks of 2,047 (one of the budget decodes): four steps with T(1).
    profile = make_profile(prefill_s_per_token=1e-5, max_batched_tokens=2048)
    found = planned("plain", profile, rates=(1e-4,), prompt=8000.0)
    assert found.pools
    ttft = next(e.value_s for e in found.pools[0].at_peak.latencies if e.quantity == "ttft_p99_s")
    own = 8000 * 1e-5 + 4 * 0.0101
    # And up to one round in progress, of which half is expected and the rest adds in squares.
    assert own + 0.0101 / 2 <= ttft <= own + 0.0102


def test_chunk_gap_is_the_mixed_round_once_prompts_are_frequent():
    # 2,000 tokens at 10 us: a round with a prompt is 20 ms longer.
    profile = make_profile()
    found = planned("plain", profile, rates=(5.0,), prompt=2000.0)
    assert found.pools
    gap = next(
        e.value_s for e in found.pools[0].at_peak.latencies if e.quantity == "chunk_gap_p99_s"
    )
    alone = A_S + B_S * found.pools[0].at_peak.batch
    assert gap >= alone + 0.020
    rare = planned("plain", profile, rates=(0.01,), prompt=2000.0)
    assert rare.pools
    gap = next(
        e.value_s for e in rare.pools[0].at_peak.latencies if e.quantity == "chunk_gap_p99_s"
    )
    assert gap == pytest.approx(A_S + B_S, rel=1e-6)


verify_cost = st.floats(1.0, 3.0)
chances = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4).map(np.cumprod)


@settings(max_examples=40, deadline=None)
@given(verify_cost, chances, st.floats(0.0, 0.004), st.sampled_from([0.0, 0.1]))
def test_by_load_is_never_below_plain_or_always(cost, shares, draft_s, spread):
    profile = make_profile(
        step_s=lambda b, q: (A_S + B_S * b) * (1.0 if q == 1 else cost),
        draft_s=lambda _, g: draft_s * g,
        shares=tuple(shares.tolist()),
        spread=spread,
    )
    rates = {
        policy: plan.pools[0].service.capacity_per_s
        for policy in ("plain", "always", "by-load")
        if (plan := planned(policy, profile)).pools
    }
    best = max(rates["plain"], rates.get("always", 0.0))
    assert rates["by-load"] >= best * 0.99


def _rate(plan: PolicyPlan) -> float:
    return plan.pools[0].service.capacity_per_s


@settings(max_examples=40, deadline=None)
@given(chances, st.floats(0.0, 1.0), st.integers(0, 3))
def test_more_acceptance_never_lowers_capacity_by_load(shares, more, place):
    better = shares.copy()
    top = 1.0 if place == 0 else better[place - 1]
    better[place] += more * (top - better[place])
    found = [
        planned(
            "by-load",
            make_profile(
                step_s=lambda b, q: (A_S + B_S * b) * (1 + 0.1 * (q - 1)),
                draft_s=lambda _, g: 0.001 * g,
                shares=tuple(kept.tolist()),
            ),
            objectives={"ttft_p99_s": 1000.0, "tpot_p50_s": 0.03},
        )
        for kept in (shares, better)
    ]
    assert found[0].pools
    assert found[1].pools
    assert _rate(found[1]) >= _rate(found[0]) * 0.99


def test_by_load_ranges_cover_every_batch_once_and_are_at_most_four():
    # Verification dearer with the batch: long drafts at small batches, none at large ones.
    profile = make_profile(
        step_s=lambda b, q: A_S + B_S * b * (1 + 0.9 * (q - 1)), draft_s=lambda _, g: 0.0004 * g
    )
    candidate = Candidate.of(profile, "eagle", demand(make_forecast()))
    ranges = policies._by_batch(candidate.replica, 0, candidate.replica.variants.tokens_per_round)
    assert 1 < len(ranges) <= 4
    assert ranges[0].from_batch == 1
    assert ranges[-1].to_batch == 256
    for before, after in itertools.pairwise(ranges):
        assert after.from_batch == before.to_batch + 1
        assert after.draft_tokens < before.draft_tokens


def test_spread_between_requests_lowers_the_capacity_at_a_percentile():
    calm = make_profile(draft_s=lambda *_: 0.001, spread=0.0)
    spread = make_profile(draft_s=lambda *_: 0.001, spread=0.15)
    rates = [
        capacity_of(profile, {"ttft_p99_s": 100.0, "tpot_p99_s": 0.012})
        for profile in (calm, spread)
    ]
    assert rates[1] < 0.9 * rates[0]
    # At the median it changes nothing.
    rates = [
        capacity_of(profile, {"ttft_p99_s": 100.0, "tpot_p50_s": 0.012})
        for profile in (calm, spread)
    ]
    assert rates[1] == pytest.approx(rates[0])


def capacity_of(profile: Profile, objectives: dict[str, float]) -> float:
    found = planned("always:4", profile, objectives=objectives)
    assert found.pools
    return found.pools[0].service.capacity_per_s


def test_a_loaded_and_idle_drafter_costs_its_overhead():
    profile = make_profile(draft_s=lambda *_: 0.0, shares=(0.0,) * 4, overhead=0.05)
    objectives = {"ttft_p99_s": 1000.0, "tpot_p50_s": 0.030}
    candidate = Candidate.of(profile, "eagle", demand(make_forecast(objectives=objectives)))
    idle = policies._constant(candidate.replica, 0)
    loaded = capacity(Curve.of(candidate.replica, candidate.constraints, idle, loaded=True))
    plain = capacity(Curve.of(candidate.replica, candidate.constraints, idle, loaded=False))
    a, b = 1.05 * A_S, 1.05 * B_S
    assert loaded.rate_per_s[0] == pytest.approx((1 - a / 0.03) / (b * 100 + 0.001), rel=3e-3)
    assert loaded.rate_per_s[0] < plain.rate_per_s[0]


def test_where_a_rate_has_two_batches_in_balance_the_larger_is_planned_on():
    rate = np.array([[1.0, 2.0, 1.5, 3.0, 2.5, np.nan]])
    assert _balance(rate)[0, :4].tolist() == [1.0, 1.5, 1.5, 3.0]
    assert np.isnan(_balance(rate)[0, 4:]).all()  # past the highest rate nothing is planned
