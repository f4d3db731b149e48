"""Classes that go without drafts beside others that draft, in the same batch."""

import numpy as np
import pytest

from capplan.planner import policies
from capplan.planner.candidate import Candidate, in_part, same_engine
from capplan.planner.capacity import Curve, capacity_of_mix
from capplan.planner.chain import Asked, plan
from capplan.planner.choices import choices
from capplan.planner.closed_loop import in_flight_point
from capplan.planner.demand import demand
from capplan.planner.last_rate import capacity
from capplan.planner.operating_point import operating_point
from capplan.planner.rehearsal import engine, requests
from capplan.planner.replanned import pools_of
from capplan.planner.trial import QUICK, Trial
from capplan.records.acceptance import Acceptance
from capplan.records.forecast import TrafficClass
from capplan.records.plan import Demand, Plan, PoolPlan
from capplan.records.profile import Profile
from capplan.report.content import report
from straight import (
    ASSUMED,
    make_class,
    make_fleet,
    make_mix,
    make_profile,
    make_stage,
)

A_S, B_S, DRAFT_S, CHUNK_S = 0.010, 1e-4, 1e-5, 1e-5
"""Of a step, of each of its tokens, of a draft, of a prompt's token."""
DRAFTS = 4
KEPT = 1 + 0.9 + 0.9**2 + 0.9**3 + 0.9**4
"""Tokens a round where nine drafts of ten are kept."""
DECODE = 100
DRAFTING = (DECODE / KEPT) / (DECODE + DECODE / KEPT)
"""Part of the running sequences that drafts: classes of equal rate, weighed by their rounds."""
QUERY = 1 + DRAFTS * DRAFTING
ROUNDS = (DECODE + DECODE / KEPT) / 2
STUBBORN, WILLING = 0, 1
ONLY_WILLING = frozenset({STUBBORN})


def profile(*, able: bool = True, **settings) -> Profile:
    """A step takes a time for each token that it processes, verification or not."""
    made = make_profile(
        step_s=lambda b, q: A_S + B_S * b * q, draft_s=lambda b, g: DRAFT_S * b * g, **settings
    )
    return made.model_copy(
        update={"limits": made.limits.model_copy(update={"drafts_by_request": able})}
    )


def traffic(name: str, chance: float, rate_per_s: float = 10.0, **forecast) -> TrafficClass:
    kept = Acceptance(
        accepted_share=tuple(chance**place for place in range(1, DRAFTS + 1)),
        per_request_sd=0.0,
        origin=ASSUMED,
    )
    one = make_class(name, rates=(rate_per_s,), output=DECODE + 1.0, **forecast)
    return one.model_copy(update={"acceptance": {"eagle": kept}})


def asked(rates_per_s: tuple[float, float] = (10.0, 10.0), **forecast) -> Demand:
    stubborn, willing = rates_per_s
    return demand(
        make_mix(
            traffic("stubborn", 0.0, stubborn, **forecast),
            traffic("willing", 0.9, willing, **forecast),
        )
    )


def solved(
    undrafted: frozenset[int] = ONLY_WILLING,
    requests: Demand | None = None,
    policy: str = "always:4",
    **settings,
) -> tuple[Candidate, Curve]:
    candidate = Candidate.of(profile(**settings), "eagle", requests or asked(), undrafted=undrafted)
    return candidate, policies.curves(policy, candidate.replica, candidate.constraints)[0]


def at_batch(curve: Curve, values, batch: int) -> float:
    return float(curve.follow(values)[0, curve.replica.batch == batch].item())


def round_s(batch: float) -> float:
    return A_S + B_S * batch * QUERY + DRAFT_S * DRAFTS * batch * DRAFTING


@pytest.mark.parametrize("batch", [8, 64, 256])
def test_a_round_is_as_long_as_one_of_the_mean_of_its_tokens(batch):
    _, curve = solved()
    assert curve.replica.drafting[0, -1] == pytest.approx(DRAFTING)
    assert at_batch(curve, curve.replica.unstretched_s, batch) == pytest.approx(round_s(batch))
    # A prompt of 100 tokens takes a millisecond of the engine.
    expected = batch / (ROUNDS * round_s(batch) + batch * 100 * CHUNK_S)
    assert at_batch(curve, curve.replica.rate_per_s, batch) == pytest.approx(expected)


def test_prompts_get_what_the_drafts_that_there_are_leave_of_the_budget():
    _, curve = solved(max_batched_tokens=1024)
    prefill = curve.replica.prefill
    place = int(np.flatnonzero(curve.replica.batch == 256)[0])
    assert prefill.chunk_limit_tokens[-1, place] == pytest.approx(1024 - 256 * QUERY)


def test_the_cache_holds_slots_only_for_the_drafts_that_there_are():
    whole, part = (solved(undrafted)[1].replica for undrafted in (frozenset(), ONLY_WILLING))
    saved = whole.held_tokens[0, -1] - part.held_tokens[0, -1]
    assert saved == pytest.approx(DRAFTS * (1 - DRAFTING))


def test_leaving_a_class_undrafted_that_keeps_none_serves_more():
    """Where the stubborn class's steps bind: (s - a) / b̄ sequences at s, whatever they verify."""
    limit_s = 0.030
    prompts = {"prompt": 1.0, "objectives": {"ttft_p99_s": 100.0, "tpot_p50_s": limit_s}}
    rates = {}
    for undrafted, slope in (
        (frozenset(), (1 + DRAFTS) * B_S + DRAFTS * DRAFT_S),
        (ONLY_WILLING, QUERY * B_S + DRAFTS * DRAFTING * DRAFT_S),
    ):
        _, curve = solved(undrafted, asked(**prompts), prefill_s_per_token=1e-9)
        rates[undrafted], _ = capacity_of_mix(curve, 0)
        expected = (limit_s - A_S) / slope / (ROUNDS * limit_s)
        assert rates[undrafted] == pytest.approx(expected, rel=0.01)
    assert rates[ONLY_WILLING] > 2.5 * rates[frozenset()]


def test_a_class_that_sends_nothing_may_go_without():
    requests = asked((0.0, 10.0))
    (_, whole), (_, part) = solved(frozenset(), requests), solved(ONLY_WILLING, requests)
    np.testing.assert_array_equal(whole.rate_per_s, part.rate_per_s)


def test_where_nobody_drafts_the_drafter_is_only_loaded():
    requests = asked((10.0, 0.0))
    _, curve = solved(ONLY_WILLING, requests, overhead=0.05)
    plain, with_drafter = (curve.replica.unstretched_s[0, place] for place in (0, -1))
    np.testing.assert_allclose(with_drafter, 1.05 * plain, rtol=1e-12)
    tables = engine(curve, 0)
    np.testing.assert_allclose(tables.step_s[0, 1:, 0], 1.05 * (A_S + B_S * np.arange(1, 257)))


def test_settings_outlive_another_profile_or_demand():
    candidate, curve = solved()
    _, there = same_engine(curve, candidate.replica.profile, asked((3.0, 1.0)))
    assert there.undrafted == ONLY_WILLING
    _, never = solved(policy="plain")
    assert never.undrafted == frozenset()


def test_the_operating_point_shows_the_mean_step():
    candidate, curve = solved()
    point = operating_point(curve, candidate.demand, candidate.estimates, 0, 20.0)
    assert point.verify_s == pytest.approx(A_S + B_S * point.batch * QUERY)
    assert point.draft_s == pytest.approx(DRAFT_S * DRAFTS * max(1, point.batch * DRAFTING))
    assert point.tokens_per_round == pytest.approx(DECODE / ROUNDS)


def test_a_simulated_step_takes_the_time_of_the_drafts_that_run():
    candidate, curve = solved()
    tables, drawn = (
        engine(curve, 0),
        requests(candidate, curve, 0, np.arange(1.0, 101.0), 1),
    )
    assert tables.saved_s is not None
    for batch, drafting in ((64, 64), (64, 20), (256, 30)):
        found = tables.step_s[0, batch, 0] - (batch - drafting) * tables.saved_s[0, batch]
        tokens = batch + DRAFTS * drafting
        assert found == pytest.approx(A_S + B_S * tokens + DRAFT_S * DRAFTS * drafting)
    # The stubborn share a clock of their own, and emit a token a round.
    stubborn = drawn.traffic_class == STUBBORN
    assert set(drawn.group[drawn.kind[stubborn]]) == {drawn.undrafted_group}
    assert drawn.undrafted_group not in drawn.group[drawn.kind[~stubborn]]
    assert (drawn.tokens_per_round[drawn.kind[stubborn]] == 1).all()


def test_closed_loops_run_the_same_rounds():
    _, curve = solved(requests=asked(prompt=1.0), prefill_s_per_token=1e-9)
    point = in_flight_point(curve, 0, 64)
    assert point.round_s == pytest.approx(round_s(point.batch), rel=0.01)


@pytest.mark.parametrize("undrafted", [frozenset(), ONLY_WILLING])
def test_the_simulated_last_rate_is_near_the_balance(undrafted):
    """As near with a class undrafted as with all drafting: the balance errs by a few per cent."""
    objectives = {"ttft_p99_s": 100.0, "tpot_p50_s": 0.030}
    candidate, curve = solved(undrafted, asked(cv=0.5, objectives=objectives))
    balance, _ = capacity_of_mix(curve, 0)
    found = capacity(Trial.of(candidate, curve, 0, make_stage(), QUICK))
    assert found.rate_per_s == pytest.approx(balance, rel=0.05)


def three() -> Demand:
    chances = {"first": 0.5, "second": 0.0, "third": 0.9}
    return demand(make_mix(*(traffic(name, chance) for name, chance in chances.items())))


def test_classes_are_left_out_one_by_one_those_that_keep_least_first():
    whole = Candidate.of(profile(), "eagle", three())
    found = [candidate.replica.variants.undrafted for candidate in in_part(whole)]
    assert found == [frozenset({1}), frozenset({0, 1})]
    unable = Candidate.of(profile(able=False), "eagle", three())
    assert not list(in_part(unable))
    assert not list(in_part(Candidate.of(profile(), None, three())))


def test_ways_that_differ_only_in_who_drafts_are_told_apart():
    whole = Candidate.of(profile(), "eagle", asked())
    found = choices("always", [whole, *in_part(whole)], make_fleet().rules)
    assert len({choice.key for choice in found}) == len(found)
    assert found[0].curve.undrafted == ONLY_WILLING
    # Serving plainly is one way, whoever would draft.
    (plain,) = choices("plain", [whole, *in_part(whole)], make_fleet().rules)
    assert plain.curve.undrafted == frozenset()


def planned(*, able: bool, stage=None) -> Plan:
    objectives = {"ttft_p99_s": 100.0, "tpot_p50_s": 0.030}
    mix = make_mix(
        traffic("stubborn", 0.0, 500.0, objectives=objectives),
        traffic("willing", 0.9, 500.0, objectives=objectives),
    )
    how = Asked(policies=("always",), pooling="shared", stage=stage)
    return plan(mix, [profile(able=able)], make_fleet(), how, "test")


def only_pool(found: Plan) -> PoolPlan:
    (policy,) = found.policies
    (pool,) = policy.pools
    return pool


@pytest.mark.parametrize("simulated", [False, True])
def test_a_plan_leaves_out_the_class_that_keeps_none_where_the_engine_can(simulated):
    stage = make_stage() if simulated else None
    together, apart = (planned(able=able, stage=stage) for able in (False, True))
    assert only_pool(together).service.undrafted_classes == ()
    service = only_pool(apart).service
    assert service.undrafted_classes == ("stubborn",)
    assert only_pool(apart).sizing.replicas < only_pool(together).sizing.replicas
    assert {one.of for one in service.elasticities} >= {"tokens_per_round", "step_s"}


def test_a_plan_says_who_goes_without_and_that_such_steps_are_modelled():
    found = planned(able=True)
    (note,) = [n for n in report(found).notes if n.heading == "Draft length by running batch"]
    assert "; stubborn undrafted; in vLLM" in note.lines[0]
    assert any(caveat.about == "drafts by request" for caveat in found.caveats)
    plain = planned(able=False)
    assert not any(caveat.about == "drafts by request" for caveat in plain.caveats)


def test_a_kept_plan_is_simulated_with_the_same_classes_undrafted():
    found = planned(able=True)
    (pool,) = pools_of(found.policies[0], found.demand, {"straight": profile()}, make_fleet())
    assert pool.curve.undrafted == ONLY_WILLING
    assert pool.curve.replica.drafting[0, -1] < 0.5
