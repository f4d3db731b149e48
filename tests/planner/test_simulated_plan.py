"""Plans that are sized by simulation, at the edges of what may be asked."""

import re

import pytest
from pydantic import ValidationError

from capplan.errors import InfeasibleError, InputError
from capplan.planner.chain import Asked, plan
from capplan.records.forecast import Forecast, Lengths
from capplan.records.plan import Plan, PolicyPlan
from capplan.records.profile import Profile
from straight import make_class, make_fleet, make_forecast, make_mix, make_profile, make_stage

PROFILE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.05 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
    spread=0.1,
)
SMALL = PROFILE.model_copy(
    update={
        "name": "small",
        "memory": PROFILE.memory.model_copy(update={"kv_capacity_tokens": 5000.0}),
    }
)
CHAT = {"prompt": 100.0, "output": 11.0, "cv": 0.5}


def made(
    asked: Forecast,
    profiles: tuple[Profile, ...] = (PROFILE,),
    policies: tuple[str, ...] | None = None,
    seed: int = 1,
    **rules,
) -> Plan:
    how = Asked(policies, stage=make_stage(seed))
    return plan(asked, list(profiles), make_fleet(**rules), how, "test")


def by_name(found: Plan, policy: str) -> PolicyPlan:
    return next(one for one in found.policies if one.policy == policy)


def test_a_plan_is_simulated_and_says_with_which_seed():
    found = made(make_forecast(rates=(500.0,), **CHAT), seed=7)
    assert found.seed == 7
    assert "step times are not measured" in found.grade
    assert "modelled" not in found.grade
    kinds = {line.quantity: line.kind for line in found.origins}
    assert kinds["latency percentiles"] == "simulated"
    for one in found.policies:
        for pool in one.pools:
            assert pool.service.capacity_origin == "simulated"
            assert {latency.origin for latency in pool.at_peak.latencies} == {"simulated"}
            assert pool.ttft
            assert pool.tpot


def test_objectives_are_kept_at_the_peak_with_the_spares_lost():
    found = made(make_forecast(rates=(2000.0,), **CHAT), spare_replicas=2)
    for one in found.policies:
        for pool in one.pools:
            for latency in pool.at_peak.latencies:
                if latency.objective_s is not None:
                    assert latency.value_s <= latency.objective_s


@pytest.mark.parametrize("policy", ["plain", "always:3"])
def test_batch_and_mean_tpot_at_the_peak_are_the_simulations(policy):
    asked = make_forecast(rates=(2000.0,), **CHAT)
    (pool,) = made(asked, policies=(policy,)).policies[0].pools
    point = pool.at_peak
    # Little's law; 11 tokens on average, the first of them from the prompt.
    assert point.batch == pytest.approx(point.rate_per_s * 10 * point.tpot_mean_s, rel=0.02)
    if policy == "always:3":
        # The balance lets an answer end within a round of some three tokens; no engine does.
        balanced = point.round_s / point.tokens_per_round
        assert balanced * 1.05 < point.tpot_mean_s < balanced * 1.3


def test_the_same_seed_plans_the_same_and_another_nearly():
    asked = make_forecast(rates=(5000.0,), **CHAT)
    one, same, other = (made(asked, policies=("always:2",), seed=seed) for seed in (1, 1, 2))
    assert one == same
    first, second = (each.policies[0].pools[0].service.capacity_per_s for each in (one, other))
    assert first != second
    assert first == pytest.approx(second, rel=0.03)


def test_a_measured_profile_simulated_is_purchase_grade():
    measured = PROFILE.model_copy(
        update={"origin": PROFILE.origin.model_copy(update={"kind": "measured"})}
    )
    found = made(make_forecast(rates=(500.0,), **CHAT), (measured,), ("plain",))
    assert found.purchase_grade
    assert found.grade == "percentiles simulated on measured step times"


def test_one_request_an_hour_takes_one_replica():
    asked = make_forecast(rates=(1 / 3600,), prompt=100.0, output=21.0)
    plain, _ = (one.pools[0] for one in made(asked, policies=("plain", "always:2")).policies)
    assert plain.sizing.replicas == 1
    assert plain.at_peak.batch < 0.01
    # Nobody is met: a step of one sequence, 10.1 ms, and nothing on top.
    assert plain.at_peak.tpot_mean_s == pytest.approx(0.0101, rel=1e-3)


def test_less_than_a_token_is_refused_and_says_so():
    with pytest.raises(InputError, match="ask for less than one output token"):
        made(make_forecast(rates=(1e-6,), **CHAT))


def test_answers_of_one_token_keep_any_objective_on_the_time_between_tokens():
    objectives = {"ttft_p99_s": 1.0, "tpot_p99_s": 1e-6, "chunk_gap_p99_s": 1e-6}
    asked = make_forecast(rates=(100.0,), prompt=300.0, output=1.0, objectives=objectives)
    policies = "plain", "always:2"
    for how in (Asked(policies), Asked(policies, stage=make_stage())):
        found = plan(asked, [PROFILE], make_fleet(), how, "test")
        for one in found.policies:
            (pool,) = one.pools
            assert {latency.quantity for latency in pool.at_peak.latencies} == {"ttft_p99_s"}
            assert pool.tpot == ()
            # 3 ms of prefill a request.
            assert pool.service.capacity_per_s <= 1 / 0.003 * 1.01


def test_one_token_answers_do_not_excuse_the_others():
    long = make_class("long", rates=(50.0,), prompt=100.0, output=11.0, cv=0.5)
    short = make_class("short", rates=(50.0,), prompt=100.0, output=1.0)
    (pool,) = made(make_mix(long, short), policies=("plain",)).policies[0].pools[:1]
    named = {(one.traffic_class, one.quantity) for one in pool.at_peak.latencies}
    assert ("long", "tpot_p99_s") in named
    assert ("short", "tpot_p99_s") not in named


def test_answers_without_a_token_are_no_answers():
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Lengths(mean_tokens=0.0, cv=0.0, max_tokens=100.0)


def test_contexts_beyond_the_measured_ones_are_refused():
    with pytest.raises(InputError, match="mean contexts were measured up to 8192 tokens"):
        made(make_forecast(rates=(1.0,), prompt=100.0, output=90_000.0))


def test_a_request_that_fits_no_cache_is_infeasible_with_the_size_that_it_needs():
    asked = make_forecast(rates=(10.0,), prompt=2000.0, output=11.0, cv=1.0)
    with pytest.raises(InfeasibleError, match="profile small: prompt and answer of chat") as caught:
        made(asked, (SMALL,), ("plain",))
    enough = float(str(caught.value).rsplit(" ", 1)[1].replace(",", ""))
    memory = SMALL.memory.model_copy(update={"kv_capacity_tokens": enough})
    (one,) = made(asked, (SMALL.model_copy(update={"memory": memory}),), ("plain",)).policies
    assert one.placement is not None


def test_a_profile_that_is_too_small_makes_way_for_one_that_is_not_and_is_named():
    asked = make_forecast(rates=(10.0,), prompt=2000.0, output=11.0, cv=1.0)
    found = made(asked, (SMALL, PROFILE), ("always:2",))
    assert {pool.service.profile for one in found.policies for pool in one.pools} == {"straight"}
    (caveat,) = (one for one in found.caveats if one.about == "not planned with")
    assert "small and eagle: profile small: prompt and answer of chat" in caveat.text


MISSED = {
    "tpot": {"ttft_p99_s": 1.0, "tpot_p99_s": 0.004},
    "two": {"ttft_p99_s": 0.002, "chunk_gap_p99_s": 0.009},
}


@pytest.mark.parametrize(
    ("missed", "policy"),
    [
        ("tpot", "plain"),
        ("two", "always"),
        ("tpot", "by-load"),
    ],
)
def test_the_nearest_feasible_objectives_are_feasible(missed, policy):
    objectives = dict(MISSED[missed])
    asked = {"rates": (10.0,), **CHAT}
    with pytest.raises(InfeasibleError) as caught:
        made(make_forecast(**asked, objectives=objectives), policies=(policy,))
    text = str(caught.value)
    assert f"{policy}: one request almost alone, simulated, misses " in text
    found = re.findall(r"(\S+) of chat: \S+ s against (\S+) s; nearest feasible (\S+): (\S+)", text)
    assert len(found) == (2 if missed == "two" else 1)
    for name, limit, key, value in found:
        assert key == f"{name}_s"
        assert float(limit) == objectives[key]
        objectives[key] = float(value.rstrip(";"))
    again = made(make_forecast(**asked, objectives=objectives), policies=(policy,))
    assert again.policies[0].placement is not None


def test_always_names_the_draft_length_that_comes_nearest():
    """Alone a round of N drafts takes 10.1 ms (1 + 0.05 N) + N ms for its tokens."""
    tokens = (1.8, 2.44, 2.952, 3.3616)
    alone = [(0.0101 * (1 + 0.05 * n) + 0.001 * n) / each for n, each in enumerate(tokens, 1)]
    objectives = {"ttft_p99_s": 1.0, "tpot_p50_s": 0.5 * min(alone)}
    with pytest.raises(InfeasibleError) as caught:
        made(
            make_forecast(rates=(10.0,), prompt=1.0, output=101.0, objectives=objectives),
            policies=("always",),
        )
    named = float(str(caught.value).rsplit(" ", 1)[1])
    assert named == pytest.approx(min(alone), rel=0.05)


def test_every_pool_that_cannot_be_served_is_named():
    limits = {"ttft_p99_s": 1.0, "tpot_p50_s": 0.004}
    asked = make_mix(
        make_class("one", rates=(10.0,), prompt=1.0, output=11.0, objectives=limits),
        make_class("two", rates=(10.0,), prompt=1.0, output=21.0, objectives=limits),
    )
    how = Asked(("plain",), "separate", stage=make_stage())
    with pytest.raises(InfeasibleError) as caught:
        plan(asked, [PROFILE], make_fleet(), how, "test")
    assert "tpot_p50 of one" in str(caught.value)
    assert "tpot_p50 of two" in str(caught.value)


def test_a_policy_that_cannot_be_does_not_stop_the_others():
    # Plain 10.1 ms a token at least.
    tight = {"ttft_p99_s": 1.0, "tpot_p99_s": 0.0095}
    found = made(make_forecast(rates=(10.0,), prompt=100.0, output=41.0, objectives=tight))
    assert "misses tpot_p99 of chat" in (by_name(found, "plain").infeasible or "")
    assert by_name(found, "always").placement is not None
    assert by_name(found, "by-load").placement is not None
    assert found.verdict.policy == "always"


def test_nothing_in_a_plan_is_not_a_number():
    objectives = {"ttft_p99_s": 100.0, "tpot_p99_s": 0.5}
    asked = make_forecast(rates=(0.0, 3000.0), **CHAT, objectives=objectives)
    text = made(asked).model_dump_json()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert Plan.model_validate_json(text).seed == 1


def test_rare_classes_say_how_many_requests_they_rest_on():
    often = make_class("often", rates=(500.0,), **CHAT)
    rarely = make_class("rarely", rates=(0.5,), **CHAT)
    how = Asked(("plain",), "shared", stage=make_stage())
    found = plan(make_mix(often, rarely), [PROFILE], make_fleet(), how, "test")
    (caveat,) = (one for one in found.caveats if one.about == "rare class")
    assert caveat.text.startswith("percentiles of rarely beside often+rarely rest on ")
    assert 100 < int(caveat.text.split()[-3]) < 1000
