"""GPUs at both ends of what is stated: no bands, some, and a curve that cannot be trusted."""

import math
from dataclasses import replace

import pytest

from capplan.planner.bands import gpu_range
from capplan.planner.demand import demand
from capplan.planner.placement import placement
from capplan.planner.policy_plan import replicas
from capplan.planner.pool import Pool
from capplan.planner.search import Search
from capplan.records.forecast import Scenarios
from capplan.records.plan import GpuRange
from capplan.records.profile import Profile
from straight import make_fleet, make_forecast, make_profile, make_stage

PROFILE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.1 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
)
FLEET, STAGE = make_fleet(), make_stage()
ASKED = {
    "rates": (2000.0,),
    "prompt": 100.0,
    "output": 11.0,
    "objectives": {"ttft_p99_s": 0.5, "tpot_p99_s": 0.030},
}


def banded(low: tuple[float, ...], high: tuple[float, ...]) -> Profile:
    drafter = PROFILE.drafters["eagle"]
    shares = {"low_share": low, "high_share": high}
    acceptance = {"chat": drafter.acceptance["chat"].model_copy(update=shares)}
    changed = {"eagle": drafter.model_copy(update={"acceptance": acceptance})}
    return PROFILE.model_copy(update={"drafters": changed})


def pooled(policy: str = "plain", profile: Profile = PROFILE, **forecast) -> Pool:
    asked = demand(make_forecast(**{**ASKED, **forecast}))
    (pool,) = Search(asked, [(profile, "eagle", None)], FLEET.rules, STAGE).pools(policy)
    return pool


def bought(pool: Pool) -> int:
    gpu = pool.candidate.replica.profile.deployment.gpu
    return placement(replicas(pool), FLEET, gpu).gpus


def ends(pool: Pool, scenarios: Scenarios | None = None) -> GpuRange:
    return gpu_range([pool], bought(pool), FLEET, scenarios, STAGE)


def needed(pool: Pool) -> float:
    assert pool.sized is not None
    return max(pool.sized.unrounded_by_interval)


@pytest.mark.parametrize("policy", ["plain", "always", "by-load"])
def test_without_bands_both_ends_are_the_plan(policy):
    pool = pooled(policy)
    assert ends(pool) == GpuRange(low_gpus=bought(pool), high_gpus=bought(pool))


def test_scenarios_of_the_demand_are_those_multiples_of_the_plan():
    pool = pooled()
    found = ends(pool, Scenarios(low=0.5, high=2.0))
    assert found.low_gpus == 8 * math.ceil(0.5 * needed(pool))
    assert found.high_gpus == 8 * math.ceil(2.0 * needed(pool))


def test_the_plan_lies_inside_the_bands_of_its_acceptance():
    pool = pooled("always:3", banded((0.5, 0.25, 0.12, 0.06), (0.9, 0.81, 0.73, 0.66)))
    found = ends(pool)
    assert found.high_gpus is not None
    assert found.low_gpus < bought(pool) < found.high_gpus


def test_a_bad_end_that_nothing_serves_has_no_number():
    tight = {"ttft_p99_s": 0.5, "tpot_p99_s": 0.010}
    pool = pooled("always:3", banded((0.0, 0.0, 0.0, 0.0), (0.9, 0.8, 0.7, 0.6)), objectives=tight)
    found = ends(pool)
    assert found.high_gpus is None
    assert found.low_gpus <= bought(pool)


@pytest.mark.parametrize("error", [0.5, 2.0])
def test_a_curve_that_errs_at_the_bad_end_gives_way_to_simulation(error):
    """The same pool with its curve made to promise twice or half of what it serves."""
    pool = pooled()
    assert pool.calibration is not None
    calibration = replace(pool.calibration, ratio=error * pool.calibration.ratio)
    scenarios = Scenarios(low=0.5, high=2.0)
    found, honest = ends(replace(pool, calibration=calibration), scenarios), ends(pool, scenarios)
    # Simulated quickly instead of thoroughly: two per cent.
    assert found.low_gpus == pytest.approx(honest.low_gpus, abs=0.02 * honest.low_gpus + 8)
    assert found.high_gpus == pytest.approx(honest.high_gpus, abs=0.02 * honest.low_gpus + 8)


def test_a_small_error_of_the_curve_is_left_to_it():
    pool = pooled()
    assert pool.calibration is not None
    calibration = replace(pool.calibration, ratio=pool.calibration.ratio / 1.06)
    found = ends(replace(pool, calibration=calibration), Scenarios(low=1.0, high=2.0))
    assert found.high_gpus == 8 * math.ceil(2.0 * 1.06 * needed(pool))
