"""The search for the last rate against a plain scan, and how far chance moves its answer."""

from functools import cache

import numpy as np
import pytest

from capplan.physics.surface import Array
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.demand import demand
from capplan.planner.last_rate import capacity, settled, worst
from capplan.planner.trial import QUICK, Trial
from capplan.records.forecast import Forecast
from straight import make_class, make_forecast, make_mix, make_profile, make_stage

PROFILE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.05 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
    spread=0.1,
)
CHAT = {
    "prompt": 600.0,
    "output": 100.0,
    "cv": 0.8,
    "objectives": {"ttft_p99_s": 0.5, "tpot_p99_s": 0.030},
}
AGENT = {
    "prompt": 6000.0,
    "output": 60.0,
    "cv": 1.0,
    "objectives": {"ttft_p99_s": 2.0, "tpot_p99_s": 0.050},
}
ALONE = make_forecast(**CHAT)
MIX = make_mix(make_class("chat", rates=(7.0,), **CHAT), make_class("agent", rates=(3.0,), **AGENT))


def solved(asked: Forecast, policy: str) -> tuple[Candidate, Curve]:
    candidate = Candidate.of(PROFILE, "eagle", demand(asked))
    return candidate, policies.curves(policy, candidate.replica, candidate.constraints)[0]


def trial(asked: Forecast, policy: str) -> Trial:
    return Trial.of(*solved(asked, policy), 0, make_stage(), QUICK)


CASES = [(ALONE, "plain"), (ALONE, "always:3"), (MIX, "plain"), (MIX, "by-load")]


@cache
def scan(case: int) -> tuple[Array, Array]:
    """Uses of the worst objective at rates half a per cent apart, a twentieth to both sides."""
    tried = trial(*CASES[case])
    rates = capacity(tried).rate_per_s * np.exp(np.arange(-0.05, 0.05, 0.005))
    return rates, np.array([worst(tried, tried.run(rate))[0] for rate in rates])


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_scan_breaks_the_objectives_where_the_search_does(case):
    rates, uses = scan(case)
    found = capacity(trial(*CASES[case])).rate_per_s
    # Chance makes the use waver by about as much as it grows from one rate to the next.
    assert (uses[rates < found / 1.015] <= 1).all()
    assert (uses[rates > found * 1.015] > 1).all()


@pytest.mark.parametrize("start", [0.3, 0.97, 1.0, 1.04, 4.0])
def test_where_the_search_begins_hardly_matters(start):
    tried = trial(MIX, "plain")
    rate = capacity(tried).rate_per_s
    assert capacity(tried, start * rate).rate_per_s == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize(("asked", "policy"), [(ALONE, "always:3"), (MIX, "plain")])
def test_seeds_move_the_last_rate_by_less_than_three_per_cent(asked, policy):
    candidate, curve = solved(asked, policy)
    found = [settled(candidate, curve, 0, make_stage(seed))[1] for seed in (1, 2, 3)]
    rates = [one.rate_per_s for one in found]
    assert max(rates) < 1.03 * min(rates)
