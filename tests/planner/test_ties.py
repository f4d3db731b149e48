"""Where the answer flips, in closed form for straight-line step times."""

import pytest

from capplan.planner.chain import Asked, plan
from straight import make_fleet, make_forecast, make_profile

A_S, B_S, ROUNDS, PREFILL_S = 0.010, 0.0001, 100, 0.001


@pytest.mark.parametrize(("objective_s", "policy"), [(0.014, "always:2"), (0.014, "always:4")])
def test_the_tie_is_the_closed_form(objective_s, policy):
    """Equal capacity: (1 - a' / (t s)) / (b' m / t + d) = lambda plain, solved for the tokens t."""
    drafts = int(policy[-1])
    a, b = 1.25 * A_S + 0.001 * drafts, 1.25 * B_S
    profile = make_profile(
        step_s=lambda batch, q: (A_S + B_S * batch) * (1.0 if q == 1 else 1.25),
        draft_s=lambda _, g: 0.001 * g,
    )
    asked = make_forecast(
        rates=(2000.0,), objectives={"ttft_p99_s": 1000.0, "tpot_p50_s": objective_s}
    )
    found = plan(asked, [profile], make_fleet(), Asked(("plain", policy)), "test")
    plain = (1 - A_S / objective_s) / (B_S * ROUNDS + PREFILL_S)
    tie = (a / objective_s + plain * b * ROUNDS) / (1 - plain * PREFILL_S)
    assert found.verdict.policy == policy
    assert found.verdict.flips is not None
    stated = float(found.verdict.flips.split(" a round brings ")[1].split()[0])
    assert stated == pytest.approx(tie, abs=0.02)


def test_a_plain_verdict_names_the_acceptance_that_would_flip_it():
    # Verification costs three decode steps: no four drafts of chance 0.3 are worth it.
    profile = make_profile(
        step_s=lambda batch, q: (A_S + B_S * batch) * (1.0 if q == 1 else 3.0),
        draft_s=lambda _, g: 0.001 * g,
        shares=(0.3, 0.09, 0.027, 0.0081),
    )
    asked = make_forecast(rates=(2000.0,), objectives={"ttft_p99_s": 1000.0, "tpot_p50_s": 0.05})
    found = plan(asked, [profile], make_fleet(), Asked(("plain", "always:4")), "test")
    a, b = 3.0 * A_S + 0.004, 3.0 * B_S
    plain = (1 - A_S / 0.05) / (B_S * ROUNDS + PREFILL_S)
    tie = (a / 0.05 + plain * b * ROUNDS) / (1 - plain * PREFILL_S)
    assert found.verdict.policy == "plain"
    assert found.verdict.flips is not None
    assert f"over {tie:.1f}" in found.verdict.flips
    assert "instead of 1.43" in found.verdict.flips


def test_a_verdict_that_no_acceptance_flips_says_so():
    profile = make_profile(
        step_s=lambda batch, q: (A_S + B_S * batch) * (1.0 if q == 1 else 9.0),
        draft_s=lambda *_: 0.0,
    )
    asked = make_forecast(rates=(2000.0,), objectives={"ttft_p99_s": 1e3, "tpot_p50_s": 0.05})
    found = plan(asked, [profile], make_fleet(), Asked(("plain", "always:4")), "test")
    assert found.verdict.flips == (
        "no acceptance alone would save a replica with these draft lengths"
    )


def test_equal_fleets_say_what_speculation_still_buys():
    # One replica either way.
    profile = make_profile(draft_s=lambda *_: 0.0)
    found = plan(make_forecast(rates=(1.0,)), [profile], make_fleet(), Asked(), "test")
    assert found.verdict.policy == "plain"
    assert "as many always" in found.verdict.sentence
    assert "it would lower the worst p99 TPOT at the peak by" in found.verdict.reason
    # Equal because one replica is the least: a GPU would serve more.
    assert found.verdict.flips is not None
    assert "more traffic would show it" in found.verdict.flips
    larger = plan(make_forecast(rates=(1000.0,)), [profile], make_fleet(), Asked(), "test")
    assert larger.verdict.policy != "plain"
