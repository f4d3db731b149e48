"""What drafts must bring, against hand arithmetic on made-up step times."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics.acceptance import constant_chance
from capplan.planner import policies
from capplan.planner.break_even import break_even
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.demand import demand
from capplan.records.forecast import Rate
from capplan.records.profile import Profile
from capplan.records.service import DraftRange
from straight import BATCHES, make_forecast, make_profile

A_S, B_S = 0.010, 0.0001
WHOLE = ((1, 256, 4),)


def curve_of(profile: Profile, ranges=WHOLE, asked=None, *, loaded: bool = True) -> Curve:
    drafter = "eagle" if profile.drafters else None
    candidate = Candidate.of(profile, drafter, demand(asked or make_forecast()))
    drafts = tuple(DraftRange(from_batch=f, to_batch=t, draft_tokens=d) for f, t, d in ranges)
    return Curve.of(candidate.replica, candidate.constraints, drafts, loaded=loaded)


def verified(cost: float) -> Profile:
    """Verification takes so many decode steps, drafting a millisecond a token."""
    return make_profile(
        step_s=lambda b, q: (A_S + B_S * b) * (1.0 if q == 1 else cost),
        draft_s=lambda _, g: 0.001 * g,
    )


@pytest.mark.parametrize("drafts", [1, 2, 4])
def test_a_round_has_to_bring_what_it_takes_in_decode_steps(drafts):
    found = break_even(curve_of(verified(1.25), [(1, 256, drafts)]))
    assert [point.batch for point in found] == list(BATCHES)
    assert {point.draft_tokens for point in found} == {drafts}
    for point in found:
        tokens = 1.25 + 0.001 * drafts / (A_S + B_S * point.batch)
        assert point.tokens_per_round == pytest.approx(tokens)
        chance = point.acceptance
        assert chance is not None
        if drafts == 1:
            assert chance == pytest.approx(tokens - 1)
        elif drafts == 2:
            assert chance == pytest.approx((math.sqrt(4 * tokens - 3) - 1) / 2)
        else:
            assert (1 - chance**5) / (1 - chance) == pytest.approx(tokens)


@pytest.mark.parametrize(
    ("efficiency", "drafts", "chance"),
    [
        # A trillion-class MoE at batch 1, 16 and 128, a dense 70B at 64 and 256: rounded target
        # efficiency, drafting included, and the chance found for it by another program.
        (0.88, 1, 0.14),
        (0.77, 3, 0.23),
        (0.69, 5, 0.31),
        (0.60, 3, 0.41),
        (0.53, 5, 0.48),
        (0.90, 1, 0.11),
        (0.82, 3, 0.18),
        (0.57, 3, 0.45),
        (0.43, 5, 0.59),
        (0.37, 3, 0.74),
        (0.26, 5, 0.81),
    ],
)
def test_break_even_acceptance_of_dense_and_sparse_models(efficiency, drafts, chance):
    profile = make_profile(
        step_s=lambda _, q: 0.010 if q == 1 else 0.010 / efficiency,
        draft_s=lambda *_: 0.0,
        shares=(0.5, 0.4, 0.3, 0.2, 0.1),
    )
    first, *_ = break_even(curve_of(profile, [(1, 256, drafts)]))
    assert first.acceptance == pytest.approx(chance, abs=0.012)


def test_no_acceptance_is_enough_where_a_round_takes_longer_than_all_its_tokens():
    # Nine decode steps for at most five tokens.
    for point in break_even(curve_of(verified(9.0))):
        assert point.acceptance is None
        assert point.tokens_per_round > 9


def test_no_draft_needs_to_be_kept_where_a_round_is_no_slower_than_a_decode_step():
    profile = make_profile(draft_s=lambda *_: 0.0)
    assert {point.acceptance for point in break_even(curve_of(profile))} == {0.0}


def test_lengths_that_run_are_asked_and_all_measured_ones_where_none_runs():
    by_load = [(1, 16, 3), (17, 64, 1), (65, 256, 0)]
    assert lengths(curve_of(verified(1.25), by_load)) == {1, 3}
    assert lengths(curve_of(verified(1.25), [(1, 256, 0)])) == {1, 2, 3, 4}
    assert lengths(curve_of(verified(1.25), [(1, 256, 0)], loaded=False)) == {1, 2, 3, 4}
    assert lengths(curve_of(make_profile(), [(1, 256, 0)], loaded=False)) == set()


def lengths(curve: Curve) -> set[int]:
    return {point.draft_tokens for point in break_even(curve)}


def test_batches_whose_verification_was_not_measured_are_left_out():
    whole = verified(1.25)
    rows = tuple(r for r in whole.steps.rows if r.batch <= 64 or r.query_tokens < 5)
    profile = whole.model_copy(update={"steps": whole.steps.model_copy(update={"rows": rows})})
    assert [point.batch for point in break_even(curve_of(profile))] == [1, 2, 4, 8, 16, 32, 64]


def test_steps_are_read_at_the_context_of_the_mix():
    """Decoding takes 10 ms at a context of 128 and 30 ms at 8192, verification 20 ms at both."""
    whole = make_profile(
        step_s=lambda _, q: 0.010 if q == 1 else 0.020, draft_s=lambda *_: 0.0, shares=(0.5,)
    )
    rows = tuple(
        row.model_copy(update={"step_s": 0.030})
        if row.query_tokens == 1 and row.context_tokens == 8192
        else row
        for row in whole.steps.rows
    )
    profile = whole.model_copy(update={"steps": whole.steps.model_copy(update={"rows": rows})})
    curve = curve_of(profile, [(1, 256, 1)], two_mixes())
    short, long = curve.replica.load.shares[:, 0].argmax(), curve.replica.load.shares[:, 1].argmax()
    # Answers of 101 tokens: half of the hundred after the first is written on average.
    for mix, prompt in ((int(short), 100), (int(long), 4000)):
        decode_s = 0.010 + 0.020 * (prompt + 50 - 128) / (8192 - 128)
        tokens = [point.tokens_per_round for point in break_even(curve, mix)]
        assert tokens == pytest.approx([0.020 / decode_s] * len(BATCHES))
    # Left alone, the busiest interval's mix.
    assert break_even(curve) == break_even(curve, int(long))


def two_mixes():
    """Short prompts alone in one interval, long ones alone in the next, which is busier."""
    forecast = make_forecast()
    chat = forecast.classes[0]
    long = make_forecast(prompt=4000.0).classes[0]
    classes = (
        chat.model_copy(update={"share": None, "rate": Rate(values_per_s=(5.0, 0.0))}),
        long.model_copy(
            update={"name": "long", "share": None, "rate": Rate(values_per_s=(0.0, 9.0))}
        ),
    )
    return forecast.model_copy(update={"rate": None, "classes": classes})


def test_a_plain_policy_says_what_its_drafter_would_have_to_bring():
    candidate = Candidate.of(verified(1.25), "eagle", demand(make_forecast()))
    (curve,) = policies.curves("plain", candidate.replica, candidate.constraints)
    assert len(break_even(curve)) == 4 * len(BATCHES)


@given(st.floats(0.0, 1.0), st.integers(1, 16))
def test_the_chance_brings_the_tokens_that_were_asked(chance, drafts):
    tokens = sum(chance**place for place in range(drafts + 1))
    found = float(constant_chance(tokens, drafts))
    assert sum(found**place for place in range(drafts + 1)) == pytest.approx(tokens, rel=1e-12)


def test_all_drafts_kept_bring_one_token_more_than_was_drafted_and_no_more():
    found = constant_chance([5.0, np.nextafter(5.0, 6.0), 1.0, 0.0], draft_tokens=4)
    assert found[0] == 1.0
    assert np.isnan(found[1])
    assert found[2:].tolist() == [0.0, 0.0]
