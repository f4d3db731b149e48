"""The last rate that keeps the objectives, found by simulation."""

import numpy as np
import pytest

from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import capacity_of_mix
from capplan.planner.demand import demand
from capplan.planner.last_rate import capacity, worst
from capplan.planner.trial import QUICK, Stage, Trial
from capplan.simulator.arrivals import poisson
from capplan.simulator.replica import simulate
from capplan.simulator.split import simulate_split, starts_s
from straight import make_forecast, make_profile

PROFILE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.05 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
    spread=0.1,
)


def trial(policy: str, seed: int = 1, **forecast) -> Trial:
    candidate = Candidate.of(PROFILE, "eagle", demand(make_forecast(**forecast)))
    curve = policies.curves(policy, candidate.replica, candidate.constraints)[0]
    return Trial.of(
        candidate, curve, 0, Stage(simulate, simulate_split, starts_s, poisson, seed), QUICK
    )


CHAT = {
    "prompt": 600.0,
    "output": 200.0,
    "cv": 0.8,
    "objectives": {"ttft_p99_s": 1.0, "tpot_p99_s": 0.030},
}


@pytest.mark.parametrize("policy", ["plain", "always:3"])
def test_objectives_hold_at_the_rate_found_and_not_above_it(policy):
    tried = trial(policy, **CHAT)
    found = capacity(tried)
    assert worst(tried, tried.run(found.rate_per_s))[0] <= 1
    assert worst(tried, tried.run(found.rate_per_s * 1.02))[0] > 1
    assert found.binding.text in ("tpot_p99 of chat", "ttft_p99 of chat")


def test_the_rate_hardly_depends_on_the_draws():
    rates = [capacity(trial("plain", seed=seed, **CHAT)).rate_per_s for seed in range(1, 6)]
    assert np.std(rates) / np.mean(rates) < 0.03


def test_a_median_objective_agrees_with_the_closed_form_where_prefill_is_nothing():
    """T = a + b B and equal answers: time per token is a / (1 - rate b m) on average.

    With one prompt token and a median objective the mean-value capacity (1 - a / s) / (b m) holds
    but for the spread of the load, which is small at a batch near a hundred.
    """
    tried = trial(
        "plain", prompt=1.0, output=201.0, objectives={"ttft_p99_s": 100.0, "tpot_p50_s": 0.020}
    )
    expected = (1 - 0.010 / 0.020) / (0.0001 * 200)
    assert capacity(tried).rate_per_s == pytest.approx(expected, rel=0.04)


def test_no_objective_bounds_what_cannot_be_served():
    tried = trial(
        "plain", prompt=100.0, output=101.0, objectives={"ttft_p99_s": 1e6, "tpot_p99_s": 1e3}
    )
    found = capacity(tried)
    assert found.binding.text == "requests come faster than they can be served"
    # 256 sequences of 100 rounds with 35.6 ms each, and a millisecond of prefill a request.
    assert found.rate_per_s == pytest.approx(256 / (100 * 0.0356 + 256 * 0.001), rel=0.01)


def test_a_search_that_starts_far_below_the_last_rate_arrives():
    """Prompts of next to no work: the screen stops at a budget that a prompt alone never fills."""
    profile = make_profile(prefill_s_per_token=1e-8, max_batched_tokens=512)
    objectives = {"ttft_p50_s": 100.0, "tpot_p50_s": 1.0}
    asked = make_forecast(prompt=50.0, output=1.0, objectives=objectives)
    candidate = Candidate.of(profile, None, demand(asked))
    curve = policies.curves("plain", candidate.replica, candidate.constraints)[0]
    stage = Stage(simulate, simulate_split, starts_s, poisson, 1)
    found = capacity(Trial.of(candidate, curve, 0, stage, QUICK))
    assert found.binding.kind == "saturation"
    assert found.rate_per_s > 1000 * capacity_of_mix(curve, 0)[0]
