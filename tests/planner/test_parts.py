"""Parts of a latency: they sum to it, and luck is what chance in the drafts did."""

import numpy as np
import pytest

from capplan.physics.engine import Outcome
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.demand import demand
from capplan.planner.parts import tpot_parts, ttft_parts
from capplan.planner.trial import QUICK, Trial
from capplan.records.forecast import Forecast
from capplan.records.parts import TpotParts
from capplan.records.profile import Profile
from straight import make_class, make_forecast, make_mix, make_profile, make_stage

CHAT = {"prompt": 300.0, "output": 101.0, "cv": 0.5}


def profile(spread: float, **given) -> Profile:
    return make_profile(
        step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.05 * (q - 1)),
        draft_s=lambda _, g: 0.001 * g,
        spread=spread,
        **given,
    )


def ran(
    policy: str, forecast: Forecast | None = None, rate_per_s: float = 10.0, **given
) -> tuple[Trial, Outcome]:
    asked = demand(forecast or make_forecast(**CHAT))
    candidate = Candidate.of(profile(**{"spread": 0.1, **given}), "eagle", asked)
    curve = policies.curves(policy, candidate.replica, candidate.constraints)[0]
    trial = Trial.of(candidate, curve, 0, make_stage(), QUICK)
    return trial, trial.run(rate_per_s)


def by_percentile(trial: Trial, run: Outcome) -> dict[str, TpotParts]:
    return {part.percentile: part for part in tpot_parts(trial, run)}


TWO = make_mix(
    make_class("short", rates=(5.0,), prompt=50.0, output=11.0, cv=0.5),
    make_class("long", rates=(5.0,), prompt=2000.0, output=101.0, cv=0.5),
)
CROWDED = {"kv_capacity_tokens": 15_000.0}


@pytest.mark.parametrize("policy", ["plain", "always:3", "by-load"])
@pytest.mark.parametrize("forecast", [None, TWO])
@pytest.mark.parametrize("given", [{}, CROWDED])
def test_parts_sum_to_the_whole(policy, forecast, given):
    trial, run = ran(policy, forecast, **given)
    classes = len(trial.demand.classes)
    ttft, tpot = ttft_parts(trial, run), tpot_parts(trial, run)
    assert len(ttft) == len(tpot) == 2 * classes
    for one in ttft:
        assert one.queue_s + one.prefill_s + one.interference_s == pytest.approx(one.ttft_s)
    for two in tpot:
        parts = two.target_s, two.draft_s, two.interference_s, two.preemption_s, two.luck_s
        assert sum(parts) == pytest.approx(two.tpot_s)


@pytest.mark.parametrize("policy", ["plain", "always:3"])
def test_percentiles_of_the_parts_are_those_of_the_run(policy):
    trial, run = ran(policy)
    inside = trial.counted(0)
    for one in ttft_parts(trial, run):
        known = np.quantile(run.ttft_s[inside], 0.5 if one.percentile == "p50" else 0.99)
        assert one.ttft_s == pytest.approx(known, rel=0.05)
    for two in tpot_parts(trial, run):
        known = np.quantile(trial.samples(run, 0, "tpot"), 0.5 if two.percentile == "p50" else 0.99)
        assert two.tpot_s == pytest.approx(known, rel=0.05)


def test_plain_decoding_knows_no_luck_and_no_drafting():
    for part in tpot_parts(*ran("plain")):
        assert part.luck_s == pytest.approx(0.0, abs=1e-9)
        assert part.draft_s == 0


def test_luck_is_nought_on_average():
    """Rounds over and under the class's average cancel: what is left is their steps' unevenness."""
    trial, run = ran("always:3")
    inside = trial.counted(0) & (trial.drawn.output_tokens > 1)
    after = trial.drawn.output_tokens[inside] - 1
    expected = after * run.rounds[inside].sum() / after.sum()
    stepping = (run.target_s + run.draft_s + run.interference_s)[inside]
    luck = stepping * (1 - expected / run.rounds[inside])
    assert abs(luck.sum()) < 0.01 * stepping.sum()


def test_the_slow_are_unlucky_and_the_more_so_the_wider_acceptance_spreads():
    narrow, wide = (by_percentile(*ran("always:3", spread=spread)) for spread in (0.0, 0.15))
    assert 0 < narrow["p99"].luck_s < wide["p99"].luck_s
    assert wide["p99"].luck_s > 0.3 * wide["p99"].tpot_s
    assert abs(wide["p50"].luck_s) < 0.1 * wide["p50"].tpot_s
    # Luck apart, the slow run the steps that all others run.
    usual = wide["p99"].tpot_s - wide["p99"].luck_s
    assert usual == pytest.approx(wide["p50"].tpot_s, rel=0.15)


def test_with_spread_the_fast_half_is_lucky():
    trial, run = ran("always:3", spread=0.15)
    times = trial.samples(run, 0, "tpot")
    here = np.flatnonzero(trial.counted(0) & (trial.drawn.output_tokens > 1))
    fast = here[np.argsort(times)[: len(here) // 4]]
    after = trial.drawn.output_tokens - 1
    each = after[here].sum() / run.rounds[here].sum()
    assert (after[fast] / run.rounds[fast]).mean() > each


def test_drafting_is_what_its_table_says():
    """Three drafts take 3 ms of each round; a round brings as many tokens as its shares add to."""
    part = by_percentile(*ran("always:3", spread=0.0))["p50"]
    tokens = 1 + 0.8 + 0.64 + 0.512
    # A short answer's last round is needed in part only.
    assert part.draft_s == pytest.approx(0.003 / tokens, rel=0.06)


def test_prompts_of_others_are_the_interference():
    quiet, busy = (by_percentile(*ran("plain", rate_per_s=rate)) for rate in (0.01, 30.0))
    assert quiet["p50"].interference_s < 1e-4
    # 30 requests a second of 300 tokens at 10 us keep the engine for 9 % of the time.
    share = busy["p50"].interference_s / busy["p50"].tpot_s
    assert share == pytest.approx(0.09, abs=0.015)


def test_lost_cache_shows_as_preemption():
    crowded = ran("plain", rate_per_s=20.0, **CROWDED)
    assert sum(part.preemption_s for part in tpot_parts(*crowded)) > 0
    for part in tpot_parts(*ran("plain")):
        assert part.preemption_s == pytest.approx(0.0, abs=1e-9)


def test_alone_a_prompt_takes_its_own_time():
    """300 tokens at 10 us; shorter than 256 tokens take as long as 256."""
    trial, run = ran("plain", make_forecast(prompt=300.0, output=101.0), rate_per_s=0.01)
    median = ttft_parts(trial, run)[0]
    assert median.ttft_s == pytest.approx(0.003, rel=0.01)
    assert median.prefill_s == pytest.approx(0.003, rel=0.01)
    assert median.queue_s == pytest.approx(0.0, abs=1e-6)


def test_answers_of_one_token_have_no_time_a_token():
    trial, run = ran("always:3", make_forecast(prompt=300.0, output=1.0))
    assert tpot_parts(trial, run) == ()
    assert len(ttft_parts(trial, run)) == 2
