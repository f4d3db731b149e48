"""Ways to serve classes: the simple first among equals, and nothing better left out."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.choices import Choice, best, choices
from capplan.planner.demand import demand
from capplan.planner.last_rate import capacity
from capplan.planner.search import Search
from capplan.planner.trial import QUICK, Trial
from capplan.records.profile import Profile
from capplan.records.service import DraftRange
from straight import make_fleet, make_forecast, make_profile, make_stage

RULES = make_fleet().rules
CHAT = {
    "rates": (1000.0,),
    "prompt": 50.0,
    "output": 11.0,
    "cv": 0.5,
    "objectives": {"ttft_p99_s": 1.0, "tpot_p99_s": 0.030},
}


def speculative(
    shares: tuple[float, ...] = (0.8, 0.64, 0.512, 0.4096),
    each_token: float = 0.05,
    spread: float = 0.0,
    overhead: float = 0.0,
    draft_s: Callable[[int, int], float] = lambda _, g: 0.001 * g,
) -> Profile:
    return make_profile(
        step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + each_token * (q - 1)),
        draft_s=draft_s,
        shares=shares,
        spread=spread,
        overhead=overhead,
    )


def solved(profile: Profile, drafter: str | None = "eagle", **forecast) -> Candidate:
    return Candidate.of(profile, drafter, demand(make_forecast(**{**CHAT, **forecast})))


def need(profile: Profile, policy: str, **forecast) -> float:
    """Replicas before rounding, by simulation."""
    asked = demand(make_forecast(**{**CHAT, **forecast}))
    search = Search(asked, [(profile, "eagle", None)], RULES, make_stage())
    (pool,) = search.pools(policy)
    assert pool.sized is not None
    return max(pool.sized.unrounded_by_interval)


@pytest.mark.parametrize("policy", ["plain", "always", "always:2", "by-load"])
def test_at_most_three_ways_are_simulated_and_each_only_once(policy):
    found = choices(policy, [solved(speculative()), solved(speculative())], RULES)
    assert 1 <= len(found) <= 3
    assert len({way.key for way in found}) == len(found)


def test_by_load_may_always_decode_plainly():
    found = choices("by-load", [solved(speculative())], RULES)
    assert not found[0].curve.loaded
    assert all(way.curve.loaded for way in found[1:])


def test_what_the_balance_needs_least_goes_first():
    ways = choices("always", [solved(speculative())], RULES)
    needs = [way.gpus(way.replicas) for way in ways]
    assert needs[0] <= 1.005 * min(needs)
    assert needs[1:] == sorted(needs[1:])


def test_half_a_percent_is_not_worth_another_way():
    (way, *_) = choices("plain", [solved(speculative())], RULES)
    assert best([(way, 1.004), (way, 1.0)])[1] == 1.004
    assert best([(way, 1.006), (way, 1.0)])[1] == 1.0


def test_of_ways_that_cannot_serve_the_closest_is_named():
    ways = choices("always", [solved(speculative(), **HOPELESS)], RULES)
    assert all(way.replicas == np.inf for way in ways)
    chosen, _ = best((way, np.inf) for way in ways)
    assert chosen.alone == min(way.alone for way in ways) > 1


HOPELESS = {"objectives": {"ttft_p99_s": 1.0, "tpot_p99_s": 0.001}}


@settings(max_examples=3, deadline=None)
@given(st.floats(0.1, 0.8), st.floats(0.02, 0.15), st.floats(0.0, 0.1), st.floats(0.02, 0.3))
def test_more_acceptance_never_needs_more_replicas_by_load(chance, more, spread, each_token):
    few, many = (
        need(speculative(tuple(kept**i for i in range(1, 5)), each_token, spread), "by-load")
        for kept in (chance, chance + more)
    )
    # A last rate is known to half a percent, and chance is drawn anew where the batch changes.
    assert many <= few * 1.01


@settings(max_examples=3, deadline=None)
@given(st.floats(0.05, 0.9), st.floats(0.02, 0.5), st.floats(0.0, 0.15), st.floats(0.0, 0.1))
def test_by_load_is_never_worse_than_plain(chance, each_token, spread, overhead):
    profile = speculative(tuple(chance**i for i in range(1, 5)), each_token, spread, overhead)
    assert need(profile, "by-load") <= need(profile, "plain") * 1.01


def capacity_of(candidate: Candidate, curve: Curve) -> float:
    return capacity(Trial.of(candidate, curve, 0, make_stage(), QUICK)).rate_per_s


def zeros(candidate: Candidate) -> Curve:
    """A drafter in memory and a table that never drafts."""
    table = (DraftRange(from_batch=1, to_batch=256, draft_tokens=0),)
    return Curve.of(candidate.replica, candidate.constraints, table, loaded=True)


def test_plain_is_a_table_of_zeros_where_an_idle_drafter_costs_nothing():
    candidate = solved(speculative(spread=0.1))
    (plain,) = choices("plain", [candidate], RULES)
    assert capacity_of(candidate, zeros(candidate)) == capacity_of(candidate, plain.curve)


def test_an_idle_drafter_costs_what_is_stated():
    """At a median objective s a step may take s / 1.05: (1 - a / s) falls by what that comes to."""
    objectives = {"ttft_p99_s": 100.0, "tpot_p50_s": 0.020}
    forecast = {"prompt": 1.0, "output": 101.0, "cv": 0.0, "objectives": objectives}
    costly = solved(speculative(overhead=0.05), **forecast)
    (plain,) = choices("plain", [costly], RULES)
    stated = (1 - 1.05 * 0.010 / 0.020) / 1.05 / (1 - 0.010 / 0.020)
    seen = capacity_of(costly, zeros(costly)) / capacity_of(costly, plain.curve)
    assert seen == pytest.approx(stated, rel=0.02)


def test_the_same_way_of_two_policies_is_the_same_way():
    candidate = solved(speculative())
    always = {way.key for way in choices("always", [candidate], RULES)}
    two: list[Choice] = choices("always:2", [candidate], RULES)
    assert {way.key for way in two} <= always
