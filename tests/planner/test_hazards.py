"""Hazards of an operating point, there and not there by hand arithmetic on straight lines.

Plain: T = 10 ms + 0.1 ms B, 100 rounds and 1 ms of prefill a request, so that a rate r holds
B = r / (1 - 0.011 r) and a batch of 256 serves 256 / 3.816 = 67.09 requests/s.
"""

import math
import re

import numpy as np
import pytest

from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.demand import demand
from capplan.planner.hazards import hazards
from capplan.planner.load import Load
from capplan.planner.operating_point import batch_at
from capplan.planner.service import Replica
from capplan.planner.speculation import Variants
from capplan.planner.surfaces import Surfaces
from capplan.records.profile import Profile
from capplan.records.service import DraftRange
from straight import make_forecast, make_profile

A_S, B_S = 0.010, 0.0001
PLAIN, ALWAYS = ((1, 256, 0),), ((1, 256, 4),)


def curve_of(profile: Profile, ranges=PLAIN, **forecast) -> Curve:
    drafter = "eagle" if profile.drafters else None
    candidate = Candidate.of(profile, drafter, demand(make_forecast(**forecast)))
    drafts = tuple(DraftRange(from_batch=f, to_batch=t, draft_tokens=d) for f, t, d in ranges)
    return Curve.of(candidate.replica, candidate.constraints, drafts, loaded=drafter is not None)


def said(curve: Curve, rate_per_s: float) -> dict[str, str]:
    return {caveat.about: caveat.text for caveat in hazards(curve, 0, rate_per_s)}


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\.?\d*", text)]


def plain_rate(batch: float) -> float:
    return batch / (1 + 0.011 * batch)


def test_nothing_is_said_of_a_replica_at_ease():
    assert said(curve_of(make_profile()), 30.0) == {}
    assert said(curve_of(make_profile(draft_s=lambda *_: 0.0), ALWAYS), 30.0) == {}
    assert said(curve_of(make_profile()), 0.0) == {}


def switching(at_batch: int) -> Curve:
    """Four drafts up to a batch, none from the next on.

    Speculating, a round takes 1.25 T + 4 ms and brings 3.3616 tokens: 100 / 3.3616 rounds.
    """
    profile = make_profile(
        step_s=lambda b, q: (A_S + B_S * b) * (1.0 if q == 1 else 1.25),
        draft_s=lambda _, g: 0.001 * g,
    )
    return curve_of(profile, ((1, at_batch, 4), (at_batch + 1, 256, 0)))


def speculative_batch(rate: float) -> float:
    rounds = 100 / 3.3616
    return rate * rounds * 0.0165 / (1 - rate * (rounds * 0.000125 + 0.001))


def test_two_batches_in_balance_are_named_and_the_largest_is_planned_on():
    # At 32 sequences speculation serves 49.9 requests/s, at 33 plain decoding serves 24.2.
    curve = switching(32)
    text = said(curve, 40.0)["balance"]
    rate, small, large, planned = numbers(text)
    assert rate == 40
    assert small == pytest.approx(speculative_batch(40.0), rel=0.02)
    assert large == planned == pytest.approx(40 / (1 - 0.44), rel=0.02)
    assert planned == pytest.approx(float(batch_at(curve, 0, 40.0)), rel=0.01)
    assert text.endswith("the largest")
    # Below the dip only the small batch stays, above the top of speculation only the large one.
    assert "balance" not in said(curve, 20.0)
    assert "balance" not in said(curve, 55.0)


def test_a_larger_balance_beyond_the_highest_rate_is_named_too():
    # At 64 sequences speculation serves 80.7 requests/s, more than plain decoding at any batch.
    curve = switching(64)
    text = said(curve, 50.0)["balance"]
    _, small, large, planned = numbers(text)
    assert small == planned == pytest.approx(speculative_batch(50.0), rel=0.02)
    assert large == pytest.approx(50 / (1 - 0.55), rel=0.02)
    assert text.endswith("a burst can lead to the largest")


def starving(rate: float, **profile: int) -> dict[str, str]:
    made = make_profile(draft_s=lambda *_: 0.0, **profile)  # type: ignore[arg-type]
    return said(curve_of(made, ALWAYS, prompt=1000.0), rate)


def loaded(rate: float) -> tuple[float, float]:
    """Batch and step time: T costs the same with drafts, 10 ms of prefill a request."""
    rounds = 100 / 3.3616
    batch = rate * rounds * A_S / (1 - rate * (0.010 + rounds * B_S))
    return batch, A_S + B_S * batch


def test_prompts_starved_by_verification_are_named_with_the_budget_that_would_do():
    # 22 requests/s hold 9.2 sequences, which leave 354 of 400 tokens a step.
    batch, step_s = loaded(22.0)
    room = 400 - 5 * batch
    share = 22 * 1000 * (step_s + 1e-5 * room) / room
    # Half: 22,000 (T + 1e-5 l) = l / 2.
    enough = 5 * batch + 22_000 * step_s / (0.5 - 0.22)
    text = starving(22.0, max_batched_tokens=400)["prefill"]
    said_batch, said_room, budget, percent, remedy = numbers(text)
    assert said_batch == round(batch)
    assert said_room == pytest.approx(room, abs=1)
    assert budget == 400
    assert percent == pytest.approx(100 * share, abs=1)
    assert remedy == pytest.approx(enough, rel=0.01)
    assert "verification" in text


def test_the_budget_that_was_named_brings_the_share_to_half():
    curve = curve_of(
        make_profile(draft_s=lambda *_: 0.0, max_batched_tokens=904), ALWAYS, prompt=1000.0
    )
    batch, step_s = loaded(22.0)
    room = 904 - 5 * batch
    assert 22_000 * (step_s + 1e-5 * room) / room == pytest.approx(0.5, rel=0.01)
    assert "prefill" not in said(curve, 22.0)


def test_prompts_that_fit_are_not_called_starved():
    # 20 requests/s need 80 % of what 360 tokens a step let through, 18 need 68 %.
    assert "prefill" not in starving(18.0, max_batched_tokens=400)
    assert "prefill" in starving(21.0, max_batched_tokens=400)


def test_prompts_that_no_budget_relieves_are_named_as_such():
    # 66 requests/s of 10 ms of prefill: two thirds of the engine go to prompts whatever the chunk.
    text = starving(66.0)["prefill"]
    batch, step_s = loaded(66.0)
    room = 8192 - 5 * batch
    share = 66_000 * (step_s + 1e-5 * room) / room
    assert f"{100 * share:.0f} %" in text
    assert text.endswith("no larger chunk that was measured would bring it to half")


def test_plain_decoding_can_starve_prompts_too():
    curve = curve_of(make_profile(max_batched_tokens=100), prompt=100.0)
    # 40 requests/s hold 71.4 sequences of a token each.
    share = 4000 * (A_S + B_S * 71.43 + 1e-5 * 28.57) / 28.57
    text = said(curve, 40.0)["prefill"]
    assert text.startswith("decoding of 71 sequences leaves prompts 29 of a step's 100 tokens")
    assert f"need {100 * share:.0f} %" in text


def test_a_rate_near_the_highest_is_named_and_one_beyond_it_too():
    curve = curve_of(make_profile())
    assert "utilisation" not in said(curve, 0.94 * plain_rate(256))
    near = said(curve, 0.97 * plain_rate(256))["utilisation"]
    assert "97 % of the 67.09 that the best measured batch, 256, serves" in near
    beyond = said(curve, 1.01 * plain_rate(256))["utilisation"]
    assert "more than the 67.09" in beyond
    assert "grows without end" in beyond


def test_the_end_of_the_measured_batches_is_named():
    curve = curve_of(make_profile())
    assert "batch" not in said(curve, plain_rate(225))
    assert said(curve, plain_rate(240))["batch"] == (
        "240 sequences come within 10 % of the most that were measured, 256"
    )
    assert said(curve, 70.0)["batch"] == "70 requests/s need more than the largest measured, 256"


def test_a_rate_that_no_batch_serves_is_no_matter_of_measuring_more():
    # A step that grows with the square of the batch serves most at a batch of 100.
    profile = make_profile(step_s=lambda b, _: A_S + 1e-6 * b * b)
    found = said(curve_of(profile), 55.0)
    assert "utilisation" in found
    assert "batch" not in found


def test_contexts_below_the_shortest_measured_are_named():
    # Prompts of 10 and answers of 41: half of the forty after the first is written on average.
    text = said(curve_of(make_profile(), prompt=10.0, output=41.0), 10.0)["context"]
    assert text == (
        "a decoding sequence holds 30 tokens on average; steps were measured from 128, "
        "whose times stand in"
    )


def test_contexts_beyond_the_longest_measured_are_named():
    # A candidate refuses them; a replica alone does not.
    profile = make_profile()
    asked = demand(make_forecast(prompt=9000.0))
    surfaces = Surfaces.of(profile, None)
    variants = Variants.of(profile, None, asked, surfaces)
    with np.errstate(all="ignore"):
        replica = Replica.of(profile, None, Load.of(asked), surfaces, variants)
    drafts = (DraftRange(from_batch=1, to_batch=256, draft_tokens=0),)
    found = said(Curve.of(replica, (), drafts, loaded=False), 1.0)
    assert found["context"] == (
        "a decoding sequence holds 9,050 tokens on average; steps were measured up to 8,192: "
        "nothing is known there"
    )
    assert "utilisation" in found


def test_a_cache_that_is_nearly_full_is_named():
    # 100 + 50 tokens a sequence, z of 2.33 on the uniform position's deviation of 100 / sqrt(12).
    deviation = 2.33 * 100 / math.sqrt(12)
    limit = ((math.sqrt(deviation**2 + 4 * 150 * 10_000) - deviation) / 300) ** 2
    curve = curve_of(make_profile(kv_capacity_tokens=10_000.0))
    assert "memory" not in said(curve, plain_rate(0.94 * limit))
    near = numbers(said(curve, plain_rate(0.97 * limit))["memory"])
    assert near == pytest.approx([0.97 * limit, limit], rel=0.01)
    assert "memory" in said(curve, plain_rate(1.2 * limit))
