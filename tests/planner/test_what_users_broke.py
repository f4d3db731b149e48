"""Inputs that once ended in a wrong number, a wrong reason or a traceback."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from capplan.errors import InfeasibleError, InputError
from capplan.planner.candidate import Candidate
from capplan.planner.chain import Asked, plan
from capplan.planner.demand import demand
from capplan.records.acceptance import Acceptance
from capplan.records.forecast import Lengths, Scenarios
from capplan.records.plan import Plan
from capplan.records.profile import (
    DraftTable,
    MixedTable,
    PrefillTable,
    Profile,
    StepCell,
    StepTable,
)
from straight import ASSUMED, BATCHES, make_fleet, make_forecast, make_profile

SPECULATIVE = make_profile(draft_s=lambda _, g: 0.001 * g)


def made(profile: Profile = SPECULATIVE, policies=None, **forecast) -> Plan:
    return plan(make_forecast(**forecast), [profile], make_fleet(), Asked(policies), "test")


def test_prefill_draws_its_own_power():
    # Half the engine's time is prefill of 700 W, the rest decoding of 400 W.
    profile = make_profile(power_w=400.0, prefill_w=700.0, prefill_s_per_token=1e-4)
    found = made(
        profile,
        ("plain",),
        rates=(5.0,),
        prompt=1000.0,
        output=2001.0,
        objectives={"ttft_p99_s": 1e3, "tpot_p99_s": 1.0},
    )
    (plain,) = found.policies
    assert plain.pools
    assert plain.power is not None
    assert plain.pools[0].at_peak.batch > 10
    assert plain.pools[0].at_peak.rate_per_s > 1
    share = plain.pools[0].at_peak.rate_per_s * 1000 * 1e-4
    assert plain.pools[0].at_peak.prefill_share == pytest.approx(share, rel=1e-3)
    gpu = share * 700 + (1 - share) * 400
    node = 8 * gpu + 1000 + 1000 * (gpu - 100) / 600
    assert plain.placement is not None
    assert plain.power.it_w[0] == pytest.approx(plain.placement.nodes * node, rel=1e-3)


def test_answers_of_one_token_are_prefill_alone():
    # 2,000 tokens at 10 us beside one decode step of 10.1 ms at most: 33 to 50 prompts a second.
    found = made(
        make_profile(),
        ("plain",),
        prompt=2000.0,
        output=1.0,
        rates=(1.0,),
        objectives={"ttft_p99_s": 10.0, "tpot_p99_s": 1.0},
    )
    service = found.policies[0].pools[0].service
    assert service is not None
    assert 33 < service.capacity_per_s <= 50
    assert all(np.isfinite(e.value_s) for e in service.at_capacity.latencies)


def test_a_prompt_cached_whole_still_costs_its_last_token():
    asked = make_forecast(prompt=1000.0)
    classes = (asked.classes[0].model_copy(update={"prefix_reuse": 1.0}),)
    whole = plan(
        asked.model_copy(update={"classes": classes}),
        [SPECULATIVE],
        make_fleet(),
        Asked(("plain",)),
        "test",
    )
    assert whole.policies[0].pools
    assert whole.policies[0].pools[0].at_peak.prefill_share == pytest.approx(10 * 1e-5, rel=0.01)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.0001, 0.02), st.sampled_from(["ttft_p99_s", "tpot_p99_s", "chunk_gap_p50_s"]))
def test_a_suggested_objective_is_feasible(limit, quantity):
    objectives = {"ttft_p99_s": 100.0, "tpot_p99_s": 100.0} | {quantity: limit}
    try:
        made(policies=("plain",), objectives=objectives)
        assume(False)
    except InfeasibleError as error:
        nearest = float(re.findall(rf"nearest feasible {quantity}: (\S+)", str(error))[0])
    assert nearest > limit
    made(policies=("plain",), objectives=objectives | {quantity: nearest})


def without(profile: Profile, **gone: int) -> Profile:
    rows = tuple(
        row
        for row in profile.steps.rows
        if any(getattr(row, key) != value for key, value in gone.items())
    )
    return profile.model_copy(update={"steps": StepTable(rows=rows)})


def test_a_hole_inside_a_table_is_named():
    with pytest.raises(InputError) as caught:
        made(without(SPECULATIVE, batch=32, query_tokens=1, context_tokens=128))
    text = str(caught.value)
    assert (
        "profile straight: steps: must be a grid with holes at its far end only: "
        "batch 32, context_tokens 128, query_tokens 1 is missing"
    ) in text


def test_holes_at_the_far_end_only_lower_the_largest_batch():
    rows = tuple(r for r in SPECULATIVE.steps.rows if r.batch < 128 or r.context_tokens < 8192)
    short = SPECULATIVE.model_copy(update={"steps": StepTable(rows=rows)})
    found = made(short, ("plain",), objectives={"ttft_p99_s": 1e3, "tpot_p99_s": 100.0})
    service = found.policies[0].pools[0].service
    assert service is not None
    assert service.binding.kind == "measured batch"
    assert 64 <= service.batch_limits.measured < 128
    assert f"up to a batch of {service.batch_limits.measured}" in service.binding.text


def test_mixed_steps_outside_the_steps_are_named():
    with pytest.raises(InputError, match=r"mixed: must be a grid .* is missing, here or in steps"):
        made(
            SPECULATIVE.model_copy(
                update={
                    "steps": StepTable(rows=tuple(r for r in SPECULATIVE.steps.rows if r.batch > 1))
                }
            )
        )


def test_plain_decoding_must_be_in_both_tables():
    steps = StepTable(rows=tuple(r for r in SPECULATIVE.steps.rows if r.query_tokens > 1))
    with pytest.raises(InputError, match="steps: must hold plain decoding, query_tokens 1"):
        made(SPECULATIVE.model_copy(update={"steps": steps}))


def test_a_drafter_without_verification_is_named_and_plain_still_planned():
    bare = SPECULATIVE.model_copy(
        update={
            "steps": StepTable(
                rows=tuple(r for r in SPECULATIVE.steps.rows if r.query_tokens == 1)
            ),
            "mixed": MixedTable(
                rows=tuple(r for r in SPECULATIVE.mixed.rows if r.query_tokens == 1)
            ),
        }
    )
    with pytest.raises(InputError, match="hold no verification that drafter eagle could use"):
        made(bare)
    assert made(bare, ("plain",)).policies[0].placement is not None


def test_a_draft_table_that_ends_early_says_where():
    drafter = SPECULATIVE.drafters["eagle"]
    rows = tuple(r for r in drafter.draft.rows if r.batch <= 8)
    short = drafter.model_copy(update={"draft": DraftTable(rows=rows)})
    found = made(
        SPECULATIVE.model_copy(update={"drafters": {"eagle": short}}),
        ("always",),
        objectives={"ttft_p99_s": 1e3, "tpot_p99_s": 100.0},
    )
    service = found.policies[0].pools[0].service
    assert service is not None
    assert service.binding.text == "the profile was measured up to a batch of 8"
    assert service.batch_limits.measured == 8


def test_a_budget_of_one_token_is_a_matter_of_prefill():
    with pytest.raises(InfeasibleError, match="token budget"):
        made(make_profile(max_batched_tokens=1))


def test_an_endless_wait_at_the_last_slot_names_the_slots():
    found = made(
        make_profile(max_batch=256), ("plain",), objectives={"ttft_p99_s": 1e3, "tpot_p99_s": 100.0}
    )
    service = found.policies[0].pools[0].service
    assert service is not None
    assert service.binding.kind == "engine limit"


def test_one_profile_that_cannot_be_used_does_not_stop_another():
    broken = without(SPECULATIVE, batch=32, query_tokens=1, context_tokens=128).model_copy(
        update={"name": "broken"}
    )
    found = plan(make_forecast(), [broken, SPECULATIVE], make_fleet(), Asked(), "test")
    assert {one.service.profile for p in found.policies for one in p.pools} == {"straight"}
    assert any("broken and eagle" in caveat.text for caveat in found.caveats)


def test_rows_that_stand_for_the_same_cell_are_refused():
    row = StepCell(batch=1, context_tokens=0, query_tokens=1, step_s=0.1)
    with pytest.raises(ValidationError, match="two rows stand for batch 1, context_tokens 0"):
        StepTable(rows=(row, row.model_copy(update={"step_s": 0.2})))


def test_bands_and_scenarios_hold_what_they_surround():
    with pytest.raises(ValidationError, match="low_share must not exceed the share"):
        Acceptance(
            accepted_share=(0.5, 0.4), low_share=(0.9, 0.8), per_request_sd=0.0, origin=ASSUMED
        )
    with pytest.raises(ValidationError):
        Scenarios(low=3.0, high=0.5)


@pytest.mark.parametrize("rate", [1e-9, 1e9])
def test_extreme_rates_have_finite_answers(rate):
    asked = make_forecast(rates=(rate,) * 400, output=1001.0)
    found = plan(asked, [SPECULATIVE], make_fleet(), Asked(), "test")
    text = found.model_dump_json()
    assert "NaN" not in text
    assert "Infinity" not in text


def test_a_day_may_begin_at_the_end_of_time_and_not_last_for_ever(tmp_path):
    from capplan.files.reader import read_forecast

    text = """
version: 1
name: long
model: toy
time: {start: 9999-12-31T00:00:00Z, step: 1h}
rate: {daily: {peak_per_s: 1, trough: 0.5, peak_hour: 12, days: DAYS}}
classes:
  - name: chat
    share: 1
    input_tokens: {mean_tokens: 100, cv: 0, max_tokens: 100}
    output_tokens: {mean_tokens: 100, cv: 0, max_tokens: 100}
    acceptance_workload: chat
    objectives: {ttft_p99: 10s, tpot_p99: 1s}
"""
    for days, refused in (("5", False), ("1000000", True)):
        path = tmp_path / "f.yaml"
        path.write_text(text.replace("DAYS", days))
        asked = read_forecast(path)
        if refused:
            with pytest.raises(InputError, match="at most 200,000 intervals, found 24,000,000"):
                plan(asked, [SPECULATIVE], make_fleet(), Asked(), "test")
        else:
            assert plan(asked, [SPECULATIVE], make_fleet(), Asked(), "test").policies


@settings(max_examples=30, deadline=None)
@given(st.floats(10, 5000), st.floats(1, 3000), st.sampled_from([None, "eagle"]))
def test_the_grid_of_batches_has_no_twins_and_keeps_what_was_measured(prompt, output, drafter):
    asked = demand(make_forecast(prompt=prompt, output=output))
    grid = Candidate.of(SPECULATIVE, drafter, asked).replica.batch
    assert (np.diff(grid) > 1e-6 * grid[1:]).all()
    assert set(BATCHES) <= set(grid.tolist())
    assert grid[0] <= 0.02
    assert grid[-1] == BATCHES[-1]


def test_percentiles_of_skewed_prompts_rise():
    asked = make_forecast()
    skewed = Lengths(
        quantiles={"p50": 100.0, "p90": 300.0, "p95": 5000.0, "p99": 8000.0}, max_tokens=8100.0
    )
    objectives = {f"ttft_p{p}_s": 100.0 for p in (50, 90, 95, 99)} | {"tpot_p99_s": 1.0}
    classes = (
        asked.classes[0].model_copy(update={"input_tokens": skewed, "objectives": objectives}),
    )
    asked = asked.model_copy(update={"classes": classes})
    found = (
        plan(asked, [SPECULATIVE], make_fleet(), Asked(("plain",)), "test")
        .policies[0]
        .pools[0]
        .at_peak
    )
    assert found is not None
    values = {e.quantity: e.value_s for e in found.latencies}
    rising = [values[f"ttft_p{p}_s"] for p in (50, 90, 95, 99)]
    assert rising == sorted(rising)


def test_a_block_drafter_runs_at_the_length_that_was_measured_or_not_at_all():
    drafter = SPECULATIVE.drafters["eagle"].model_copy(update={"kind": "parallel"})
    block = SPECULATIVE.model_copy(update={"drafters": {"eagle": drafter}})
    found = made(block, ("always",))
    assert found.policies[0].pools
    assert found.policies[0].pools[0].at_peak.draft_tokens == 4
    short = MixedTable(rows=tuple(r for r in block.mixed.rows if r.query_tokens <= 3))
    with pytest.raises(InputError, match="hold no verification that drafter eagle could use"):
        made(block.model_copy(update={"mixed": short}), ("always",))


def test_attending_to_a_long_context_slows_prefill_itself():
    # 2,000 new tokens after 6,000 cached ones, whose attention costs as much as the tokens.
    rows = tuple(
        row.model_copy(update={"step_s": row.step_s * (2 if row.cached_tokens else 1)})
        for row in SPECULATIVE.prefill.rows
    )
    heavy = SPECULATIVE.model_copy(update={"prefill": PrefillTable(rows=rows)})
    asked = make_forecast(prompt=8000.0, rates=(5.0,))
    classes = (asked.classes[0].model_copy(update={"prefix_reuse": 0.75}),)
    asked = asked.model_copy(update={"classes": classes})
    light, slow = (
        plan(asked, [p], make_fleet(), Asked(("plain",)), "test").policies[0].pools[0].at_peak
        for p in (SPECULATIVE, heavy)
    )
    assert light is not None
    assert slow is not None
    # 6,000 of 131,072 tokens: that part of the whole extra, on average a thousand tokens further.
    extra = 2000 * 1e-5 * 6000 / 131_072
    gained = slow.prefill_share - light.prefill_share
    assert gained == pytest.approx(extra * slow.rate_per_s, rel=0.25)


def test_a_smallest_batch_above_one_is_said():
    steps = StepTable(rows=tuple(r for r in SPECULATIVE.steps.rows if r.batch > 1))
    mixed = MixedTable(rows=tuple(r for r in SPECULATIVE.mixed.rows if r.batch > 1))
    found = made(SPECULATIVE.model_copy(update={"steps": steps, "mixed": mixed}), ("plain",))
    assert any("smaller batches than 2 were not measured" in c.text for c in found.caveats)
