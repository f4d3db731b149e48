"""Slopes of capacity against closed forms for straight-line step times."""

import math

import numpy as np
import pytest

from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.demand import demand
from capplan.planner.elasticity import elasticities
from capplan.records.forecast import Forecast, Rate
from capplan.records.profile import Profile
from capplan.records.service import DraftRange
from straight import make_forecast, make_profile

A_S, B_S, ROUNDS, PREFILL_S, TOKENS = 0.010, 0.0001, 100, 0.001, 3.3616
MORE, LESS = 1.05, 1 / 1.05


def solved(policy: str, profile: Profile, asked: Forecast) -> tuple[Candidate, Curve]:
    candidate = Candidate.of(profile, "eagle" if profile.drafters else None, demand(asked))
    (curve, *_) = policies.curves(policy, candidate.replica, candidate.constraints)
    return candidate, curve


def slopes(policy: str, profile: Profile, asked: Forecast, factor: float = 1.0) -> dict[str, float]:
    candidate, curve = solved(policy, profile, asked)
    factors = np.full(len(curve.constraints), factor)
    return {e.of: e.value for e in elasticities(candidate, curve, factors, 0)}


def median(tpot_s: float, **lengths: float) -> Forecast:
    """On the median neither luck nor chance enters, and the capacity is a closed form."""
    return make_forecast(objectives={"ttft_p99_s": 1000.0, "tpot_p50_s": tpot_s}, **lengths)  # type: ignore[arg-type]


def rate(s, a=A_S, b=B_S, rounds=ROUNDS, prefill_s=PREFILL_S, tokens=1.0):
    """(1 - a / (t s)) / (b m / t + d): the most that keeps s seconds a token."""
    return (1 - a / (tokens * s)) / (b * rounds / tokens + prefill_s)


def slope(changed: float, unchanged: float, factor: float) -> float:
    return math.log(changed / unchanged) / math.log(factor)


def test_slopes_of_plain_decoding_are_those_of_the_closed_form():
    found = slopes("plain", make_profile(), median(0.030))
    # Answers of 101 tokens: the first comes with the prompt.
    expected = {
        "objectives": slope(rate(0.030 * MORE), rate(0.030), MORE),
        "output_tokens": slope(rate(0.030, rounds=101 * LESS - 1), rate(0.030), LESS),
        "prompt_tokens": slope(rate(0.030, prefill_s=PREFILL_S * LESS), rate(0.030), LESS),
        "step_s": slope(rate(0.030, a=A_S * LESS, b=B_S * LESS), rate(0.030), LESS),
        "prefill_s": slope(rate(0.030, prefill_s=PREFILL_S * LESS), rate(0.030), LESS),
    }
    assert list(found) == list(expected)
    for of, value in expected.items():
        assert found[of] == pytest.approx(value, abs=0.02), of


def test_slopes_under_speculation_are_those_of_the_closed_form():
    profile = make_profile(
        step_s=lambda b, q: (A_S + B_S * b) * (1.0 if q == 1 else 1.25),
        draft_s=lambda _, g: 0.001 * g,
    )
    round_ = {"a": 1.25 * A_S + 0.004, "b": 1.25 * B_S, "tokens": TOKENS}
    faster = {"a": round_["a"] * LESS, "b": round_["b"] * LESS, "tokens": TOKENS}
    luckier = {**round_, "tokens": TOKENS * MORE}
    s = 0.010
    found = slopes("always:4", profile, median(s))
    now = rate(s, **round_)
    expected = {
        "objectives": slope(rate(s * MORE, **round_), now, MORE),
        "output_tokens": slope(rate(s, rounds=101 * LESS - 1, **round_), now, LESS),
        "prompt_tokens": slope(rate(s, prefill_s=PREFILL_S * LESS, **round_), now, LESS),
        "tokens_per_round": slope(rate(s, **luckier), now, MORE),
        "step_s": slope(rate(s, **faster), now, LESS),
        "prefill_s": slope(rate(s, prefill_s=PREFILL_S * LESS, **round_), now, LESS),
    }
    assert list(found) == list(expected)
    for of, value in expected.items():
        assert found[of] == pytest.approx(value, abs=0.03), of


@pytest.mark.parametrize("policy", ["plain", "always:4", "by-load"])
def test_a_machine_that_is_faster_all_round_is_one_whose_users_wait_longer(policy):
    """Times scaled by f with the objectives scale the rate by 1 / f: the slopes sum to minus one.

    With waits, luck and interference in the percentiles; but for the width of five per cent.
    """
    profile = make_profile(
        step_s=lambda b, q: (A_S + B_S * b) * (1 + 0.06 * (q - 1)),
        draft_s=lambda _, g: 0.0005 * g,
        spread=0.08,
        chunk_s=0.002,
        tail=1.15,
    )
    asked = make_forecast(
        prompt=1500.0, output=300.0, cv=0.8, objectives={"ttft_p99_s": 0.8, "tpot_p99_s": 0.03}
    )
    found = slopes(policy, profile, asked)
    total = found["step_s"] + found["prefill_s"] + found["objectives"]
    assert total == pytest.approx(-1, abs=0.05)


def test_nothing_is_said_of_acceptance_where_nothing_drafts():
    assert "tokens_per_round" not in slopes("plain", make_profile(), median(0.03))
    loaded = make_profile(draft_s=lambda *_: 1.0)
    candidate = Candidate.of(loaded, "eagle", demand(median(0.03)))
    idle = (DraftRange(from_batch=1, to_batch=256, draft_tokens=0),)
    curve = Curve.of(candidate.replica, candidate.constraints, idle, loaded=True)
    found = {e.of for e in elasticities(candidate, curve, np.ones(len(curve.constraints)), 0)}
    assert found == {"objectives", "output_tokens", "prompt_tokens", "step_s", "prefill_s"}


def test_slopes_hold_where_the_calibrated_curve_ends():
    """What load adds to a time per token is a quarter more than modelled: s is a + (s - a) / f.

    A faster step makes a request alone faster too, so its a moves.
    """
    s, factor = 0.030, 1.25

    def left(s, a=A_S):
        return a + (s - a) / factor

    faster = {"a": A_S * LESS, "b": B_S * LESS}
    now = rate(left(s))
    expected = {
        "objectives": slope(rate(left(s * MORE)), now, MORE),
        "output_tokens": slope(rate(left(s), rounds=101 * LESS - 1), now, LESS),
        "prompt_tokens": slope(rate(left(s), prefill_s=PREFILL_S * LESS), now, LESS),
        "step_s": slope(rate(left(s, A_S * LESS), **faster), now, LESS),
        "prefill_s": slope(rate(left(s), prefill_s=PREFILL_S * LESS), now, LESS),
    }
    found = slopes("plain", make_profile(), median(s), factor=factor)
    assert found == pytest.approx(expected, abs=0.02)


def test_memory_that_binds_knows_no_objectives_and_feels_every_token_held():
    """B tokens of c̄ fit: B is the root of B c̄ + 2.33 sd sqrt(B) = M, and the rate follows it."""

    def rate_of(rounds: float, prompt: float) -> float:
        mean, deviation = prompt + rounds / 2, 2.33 * rounds / math.sqrt(12)
        batch = ((math.sqrt(deviation**2 + 4 * mean * 10_000) - deviation) / (2 * mean)) ** 2
        return batch / (rounds * (A_S + B_S * batch) + batch * prompt * 1e-5)

    profile = make_profile(kv_capacity_tokens=10_000.0)
    found = slopes("plain", profile, make_forecast(objectives={"ttft_p99_s": 1e3, "tpot_p99_s": 9}))
    now = rate_of(100, 100)
    assert found["objectives"] == 0
    assert found["output_tokens"] == pytest.approx(
        slope(rate_of(101 * LESS - 1, 100), now, LESS), abs=0.02
    )
    assert found["prompt_tokens"] == pytest.approx(
        slope(rate_of(100, 100 * LESS), now, LESS), abs=0.02
    )
    assert found["step_s"] + found["prefill_s"] == pytest.approx(-1, abs=0.01)


def test_nothing_is_said_where_the_capacity_is_the_end_of_the_measurement():
    loose = median(100.0)
    assert slopes("plain", make_profile(max_batch=1000), loose) == {}
    # An engine that stops there too knows its capacity.
    assert slopes("plain", make_profile(max_batch=256), loose)["step_s"] < 0


def test_nothing_is_said_where_not_even_one_request_is_served():
    assert slopes("plain", make_profile(), median(0.001)) == {}


def test_a_change_that_leaves_the_measurement_is_made_the_other_way():
    # 250 sequences at 37.5 ms; five per cent more would need 267 of 256 measured.
    found = slopes("plain", make_profile(max_batch=1000), median(0.0375))
    assert found["objectives"] == pytest.approx(
        slope(rate(0.0375 * LESS), rate(0.0375), LESS), abs=0.02
    )


def test_a_change_that_leaves_the_measurement_either_way_is_left_out():
    # 253 sequences of 7600 + 500 tokens: with shorter prompts 258 of 256 measured, with longer
    # ones more than the longest context, 8192 tokens.
    asked = median(0.01 + 253 * (B_S + 0.076 / 1000), prompt=7600.0, output=1001.0)
    found = slopes("plain", make_profile(max_batch=1000), asked)
    assert found["objectives"] > 0
    assert "prompt_tokens" not in found


def test_acceptance_that_cannot_rise_is_lowered():
    # All drafts are kept: five tokens a round are the most.
    profile = make_profile(
        step_s=lambda b, q: (A_S + B_S * b) * (1.0 if q == 1 else 1.25),
        draft_s=lambda *_: 0.0,
        shares=(1.0,) * 4,
    )
    round_ = {"a": 1.25 * A_S, "b": 1.25 * B_S}
    less = slope(rate(0.01, tokens=5 * LESS, **round_), rate(0.01, tokens=5, **round_), LESS)
    found = slopes("always:4", profile, median(0.01))
    assert found["tokens_per_round"] == pytest.approx(less, abs=0.03)


def test_only_the_mix_that_is_asked_counts():
    """Short prompts alone in one interval, long ones in the other: each as if it were alone."""
    short, long = median(0.030), median(0.030, prompt=1000.0)
    rates = Rate(values_per_s=(5.0, 0.0)), Rate(values_per_s=(0.0, 9.0))
    classes = tuple(
        one.classes[0].model_copy(update={"name": name, "share": None, "rate": own})
        for one, own, name in zip((short, long), rates, ("short", "long"), strict=True)
    )
    both = short.model_copy(update={"rate": None, "classes": classes})
    candidate, curve = solved("plain", make_profile(), both)
    for mix, share in enumerate(candidate.replica.load.shares):
        one = short if share[0] == 1 else long
        found = elasticities(candidate, curve, np.ones(len(curve.constraints)), mix)
        alone = slopes("plain", make_profile(), one)
        assert {e.of: e.value for e in found} == pytest.approx(alone, abs=0.02)
