"""The whole chain: properties that any planner must have, and what a plan says of itself."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import InfeasibleError, InputError
from capplan.planner.chain import Asked, plan
from capplan.records.forecast import Scenarios
from capplan.records.plan import Plan, PolicyPlan
from straight import make_fleet, make_forecast, make_profile

SPECULATIVE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.05 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
    spread=0.05,
    tail=1.2,
)


def made(rates=(10.0,), fleet=None, profile=SPECULATIVE, policies=None, **forecast) -> Plan:
    asked = make_forecast(rates=rates, **forecast)
    return plan(asked, [profile], fleet or make_fleet(), Asked(policies), "test")


def by_name(found: Plan, policy: str) -> PolicyPlan:
    return next(p for p in found.policies if p.policy == policy)


def gpus(found: Plan, policy: str) -> int:
    placement = by_name(found, policy).placement
    assert placement is not None
    return placement.gpus


@settings(max_examples=25, deadline=None)
@given(st.floats(0.1, 5000.0))
def test_doubling_traffic_never_lowers_gpus(rate):
    once, twice = made((rate,)), made((2 * rate,))
    for policy in ("plain", "always", "by-load"):
        assert gpus(twice, policy) >= gpus(once, policy)
        assert gpus(twice, policy) <= 2 * gpus(once, policy)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.0, 500.0), min_size=1, max_size=5).filter(lambda r: max(r) > 1e-5),
    st.floats(0.0, 0.5),
)
def test_racks_hold_nodes_hold_gpus_hold_replicas_hold_the_peak(rates, headroom):
    found = made(tuple(rates), fleet=make_fleet(headroom=headroom, spare_replicas=1))
    for outcome in found.policies:
        assert outcome.placement is not None
        assert outcome.pools
        p, s = outcome.placement, outcome.pools[0].sizing
        assert p.racks * p.nodes_per_rack >= p.nodes
        assert p.gpus == p.nodes * 8 >= s.replicas * outcome.pools[0].service.gpus_per_replica
        assert p.gpus - p.gpus_stranded == p.gpus_in_replicas
        usable = outcome.pools[0].service.capacity_per_s * (1 - headroom)
        assert s.replicas_at_peak * usable >= s.peak_rate_per_s * (1 - 1e-9)
        assert (s.replicas_at_peak - 1) * usable < s.peak_rate_per_s or s.replicas_at_peak == 1


def test_objectives_are_kept_at_the_peak_with_the_spares_lost():
    found = made((500.0,), fleet=make_fleet(headroom=0.0, spare_replicas=2))
    for outcome in found.policies:
        assert outcome.pools
        for estimate in outcome.pools[0].at_peak.latencies:
            if estimate.objective_s is not None:
                assert estimate.value_s <= estimate.objective_s * (1 + 1e-6)


def test_an_hour_without_traffic_draws_idle_power():
    found = made((10.0, 0.0), policies=("plain",))
    power, placement = found.policies[0].power, found.policies[0].placement
    assert power is not None
    assert placement is not None
    # 8 GPUs of 100 W and 1 kW of everything else.
    assert power.it_w[1] == pytest.approx(placement.nodes * (8 * 100 + 1000))
    assert power.it_w[0] > power.it_w[1]


def test_power_energy_and_pue_by_hand():
    # A batch so large that the engine always steps: 500 W a GPU, (500 - 100) / (700 - 100) of
    # the way from 1 to 2 kW beside them.
    found = made((55.0,), profile=make_profile(), policies=("plain",))
    power = found.policies[0].power
    assert power is not None
    node = 8 * 500 + 1000 + 1000 * 400 / 600
    assert power.mean_it_w == pytest.approx(node, rel=1e-3)
    assert power.mean_facility_w == pytest.approx(1.5 * node, rel=1e-3)
    assert power.facility_energy_j == pytest.approx(1.5 * node * 3600, rel=1e-3)
    assert power.facility_energy_j_per_token == pytest.approx(1.5 * node / (55 * 101), rel=1e-3)
    assert (power.nameplate_w, power.tdp_w) == (10_200, 5_600)


def test_a_profile_without_watts_plans_everything_but_power():
    unknown = SPECULATIVE.model_copy(update={"power": None})
    found = made(profile=unknown)
    assert all(p.power is None and p.placement is not None for p in found.policies)


def test_objectives_that_no_batch_meets_are_infeasible_with_the_nearest_value():
    with pytest.raises(InfeasibleError) as caught:
        made(objectives={"ttft_p99_s": 10.0, "tpot_p99_s": 1e-4})
    text = str(caught.value)
    assert "no fleet of any size keeps the objectives" in text
    assert "plain: one request alone misses tpot_p99 of chat: 0.01212 s against 0.0001 s" in text
    assert caught.value.exit_code == 3


def test_speculation_can_be_the_only_way():
    # 12.1 ms plain (tail included) against 9 ms asked.
    found = made(objectives={"ttft_p99_s": 10.0, "tpot_p99_s": 0.009})
    assert by_name(found, "plain").placement is None
    assert found.verdict.policy == "always"
    assert "plain decoding keeps the objectives with no fleet" in found.verdict.sentence


def test_weights_that_do_not_fit_are_infeasible():
    memory = SPECULATIVE.memory.model_copy(update={"weights_bytes": 1.3e12})
    heavy = SPECULATIVE.model_copy(update={"memory": memory})
    with pytest.raises(InfeasibleError, match="nearest feasible: 9 GPUs a replica"):
        made(profile=heavy)


def test_a_profile_of_another_model_is_refused():
    other = SPECULATIVE.model_copy(
        update={"model": SPECULATIVE.model.model_copy(update={"name": "other"})}
    )
    with pytest.raises(InputError, match="must be the forecast's model, toy, found other"):
        made(profile=other)


def test_a_fleet_without_the_gpu_is_refused():
    deployment = SPECULATIVE.deployment.model_copy(update={"gpu": "b200-sxm"})
    with pytest.raises(InputError, match=r"no node holds the GPU .* b200-sxm, found h200-sxm"):
        made(profile=SPECULATIVE.model_copy(update={"deployment": deployment}))


def test_prompts_beyond_the_measured_ones_are_refused():
    with pytest.raises(InputError, match="mean contexts were measured up to 8192 tokens"):
        made(prompt=9000.0)


def test_an_unmeasured_draft_length_is_refused():
    with pytest.raises(InputError, match="covers draft lengths 1, 2, 3, 4, found 7"):
        made(policies=("always:7",))


def test_an_unknown_workload_is_refused_with_the_known_ones():
    forecast = make_forecast()
    classes = (forecast.classes[0].model_copy(update={"acceptance_workload": "prose"}),)
    with pytest.raises(InputError, match="drafter eagle: chat, found prose"):
        plan(
            forecast.model_copy(update={"classes": classes}),
            [SPECULATIVE],
            make_fleet(),
            Asked(),
            "test",
        )


def test_acceptance_of_the_forecast_goes_before_the_profiles():
    forecast = make_forecast()
    own = (
        SPECULATIVE.drafters["eagle"]
        .acceptance["chat"]
        .model_copy(update={"accepted_share": (0.5, 0.0, 0.0, 0.0)})
    )
    classes = (
        forecast.classes[0].model_copy(
            update={"acceptance": {"eagle": own}, "acceptance_workload": None}
        ),
    )
    found = plan(
        forecast.model_copy(update={"classes": classes}),
        [SPECULATIVE],
        make_fleet(),
        Asked(("always:1",)),
        "test",
    )
    assert found.policies[0].pools
    assert found.policies[0].pools[0].at_peak.tokens_per_round == pytest.approx(1.5)


def test_without_a_drafter_plain_is_planned_and_said():
    found = made(profile=make_profile())
    assert [p.policy for p in found.policies] == ["plain"]
    assert any("no drafter" in caveat.text for caveat in found.caveats)
    with pytest.raises(InputError, match="needs a profile with a drafter"):
        made(profile=make_profile(), policies=("by-load",))


def test_each_policy_takes_its_own_best_profile():
    slow = make_profile(step_s=lambda b, _: 2 * (0.010 + 0.0001 * b)).model_copy(
        update={"name": "slow"}
    )
    found = plan(make_forecast(rates=(500.0,)), [slow, SPECULATIVE], make_fleet(), Asked(), "test")
    assert {one.service.profile for p in found.policies for one in p.pools} == {"straight"}


def test_the_range_widens_with_the_bands_and_holds_the_plan():
    scenarios = Scenarios(low=0.5, high=2.0)
    asked = make_forecast(rates=(500.0,)).model_copy(update={"scenarios": scenarios})
    found = plan(asked, [SPECULATIVE], make_fleet(), Asked(("plain",)), "test").policies[0]
    assert found.gpu_range is not None
    assert found.placement is not None
    low, own, high = found.gpu_range.low_gpus, found.placement.gpus, found.gpu_range.high_gpus
    assert high is not None
    assert low < own < high
    # The profile has no bands of its own here: what is left is the demand.
    assert found.pools
    unrounded = max(found.pools[0].sizing.unrounded_by_interval)
    assert low == 8 * math.ceil(unrounded * 0.5)
    assert high == 8 * math.ceil(unrounded * 2.0)


def test_bad_ends_of_acceptance_and_times_raise_the_range():
    drafter = SPECULATIVE.drafters["eagle"]
    banded = drafter.acceptance["chat"].model_copy(
        update={"low_share": (0.2, 0.1, 0.0, 0.0), "high_share": (0.9, 0.85, 0.8, 0.75)}
    )
    profile = SPECULATIVE.model_copy(
        update={"drafters": {"eagle": drafter.model_copy(update={"acceptance": {"chat": banded}})}}
    )
    found = made((2000.0,), profile=profile)
    always, plain = by_name(found, "always"), by_name(found, "plain")
    assert always.gpu_range is not None
    assert plain.gpu_range is not None
    assert plain.gpu_range.low_gpus == plain.gpu_range.high_gpus
    assert always.gpu_range.high_gpus is not None
    assert always.gpu_range.low_gpus < gpus(found, "always") < always.gpu_range.high_gpus


def test_a_plan_says_it_is_not_purchase_grade_and_lists_its_defaults():
    found = made()
    assert not found.purchase_grade
    defaults = {(d.file, d.key): d.value for d in found.defaults}
    assert defaults["forecast", "growth"] == "1.0"
    assert defaults["forecast", "classes.chat.prefix_reuse"] == "0.0"
    assert ("forecast", "peak_minute_over_mean") not in defaults  # the forecast sets it
    kinds = {line.quantity: line.kind for line in found.origins}
    assert kinds["latency percentiles"] == "modelled"
    assert kinds["step times"] == "interpolated"


def test_a_mix_of_classes_needs_no_fewer_replicas_than_its_parts_need_together():
    """Equal classes: splitting one class in two changes nothing."""
    whole = make_forecast(rates=(500.0,))
    half = whole.classes[0].model_copy(update={"share": 0.5})
    parts = whole.model_copy(update={"classes": (half, half.model_copy(update={"name": "other"}))})
    one = plan(whole, [SPECULATIVE], make_fleet(), Asked(), "test")
    two = plan(parts, [SPECULATIVE], make_fleet(), Asked(), "test")
    for policy in ("plain", "always", "by-load"):
        assert gpus(one, policy) == gpus(two, policy)
