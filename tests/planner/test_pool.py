"""A pool over all hours: what is simulated, what is inferred from it, and how far that is off."""

import numpy as np
import pytest

from capplan.physics.surface import Array
from capplan.planner.calibration import corrected
from capplan.planner.demand import demand
from capplan.planner.grading import _of_pool
from capplan.planner.last_rate import capacity
from capplan.planner.pool import Pool
from capplan.planner.search import Search
from capplan.planner.trial import QUICK, Trial
from capplan.records.forecast import Forecast
from straight import make_class, make_fleet, make_forecast, make_mix, make_profile, make_stage

PROFILE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.1 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
    spread=0.1,
)
CHAT = {
    "prompt": 100.0,
    "output": 11.0,
    "cv": 0.5,
    "objectives": {"ttft_p99_s": 0.5, "tpot_p99_s": 0.030},
}
AGENT = {
    "prompt": 1000.0,
    "output": 21.0,
    "cv": 0.5,
    "objectives": {"ttft_p99_s": 1.0, "tpot_p99_s": 0.060},
}


def pooled(asked: Forecast, policy: str = "plain", seed: int = 1, **rules) -> Pool:
    search = Search(
        demand(asked),
        [(PROFILE, "eagle", None)],
        make_fleet(**rules).rules,
        make_stage(seed),
        "shared",
    )
    (pool,) = search.pools(policy)
    return pool


def mixed(chat: tuple[float, ...], agent: tuple[float, ...]) -> Forecast:
    return make_mix(
        make_class("chat", rates=chat, **CHAT), make_class("agent", rates=agent, **AGENT)
    )


def simulated(pool: Pool, mix: int) -> float:
    return capacity(Trial.of(pool.candidate, pool.curve, mix, make_stage(), QUICK)).rate_per_s


def kept(pool: Pool) -> list[tuple[int, float]]:
    """Mixes that were simulated, and the last rate of each."""
    assert pool.trials is not None
    return [(mix, found.rate_per_s) for mix, (_, found) in pool.trials.items()]


@pytest.mark.parametrize("policy", ["plain", "always:2", "by-load"])
def test_the_mix_that_decides_has_the_capacity_that_was_simulated(policy):
    pool = pooled(make_forecast(rates=(500.0, 800.0, 20.0), **CHAT), policy)
    ((mix, rate),) = kept(pool)
    assert mix == pool.mix
    assert pool.capacity_per_s[mix] == pytest.approx(rate, rel=1e-9)
    assert pool.doubt == 0
    assert pool.sized is not None
    assert pool.sized.peak_interval == 1
    assert max(pool.sized.unrounded_by_interval) == pytest.approx(800 / rate)


def test_objectives_hold_where_a_fleet_runs_at_its_peak():
    pool = pooled(make_forecast(rates=(500.0,), **CHAT), "by-load", headroom=0.1)
    assert pool.sized is not None
    assert pool.trials is not None
    trial, found = pool.trials[pool.mix]
    rate = pool.sized.peak_rate_per_s / pool.sized.replicas_at_peak
    assert rate <= 0.9 * found.rate_per_s * (1 + 1e-9)
    for objective, limit_s in CHAT["objectives"].items():
        assert trial.value_s(trial.run(rate), 0, objective) <= limit_s


def test_percentiles_of_the_balance_become_those_that_were_simulated():
    pool = pooled(make_forecast(rates=(500.0,), **CHAT), "always:3")
    assert pool.calibration is not None
    curve = pool.calibration.curve(pool.curve)
    # Where the simulation breaks its objective, the corrected curve does as well.
    assert corrected(curve)[pool.mix] == pytest.approx(pool.capacity_per_s[pool.mix], rel=0.10)


def errors(pool: Pool) -> Array:
    """Of the capacities of mixes that were not simulated, over a simulation of each."""
    others = [mix for mix in range(len(pool.capacity_per_s)) if mix not in dict(kept(pool))]
    return np.array([pool.capacity_per_s[mix] / simulated(pool, mix) - 1 for mix in others])


def test_other_hours_follow_the_corrected_curve():
    """From a fifth of one class to four fifths: within a tenth, as the calibration promises."""
    pool = pooled(mixed((80.0, 60.0, 40.0, 20.0), (200.0, 15.0, 20.0, 30.0)))
    off = errors(pool)
    assert len(off) >= 2
    assert np.abs(off).max() < 0.10


def hours(*needs: tuple[float, float]) -> Forecast:
    """Hours by the part of chat and the replicas that each needs by itself."""
    rates = []
    for part, replicas in needs:
        pool = pooled(mixed((part,), (1 - part,)))
        total = replicas * float(pool.capacity_per_s[pool.mix])
        rates.append((part * total, (1 - part) * total))
    chat, agent = zip(*rates, strict=True)
    return mixed(chat, agent)


def test_a_mix_that_may_need_more_once_simulated_is_simulated_too():
    pool = pooled(hours((0.9, 10.0), (0.1, 9.8)))
    assert len(kept(pool)) == 2
    assert pool.doubt > 0
    assert pool.sized is not None
    assert pool.sized.peak_interval == 0
    assert pool.sized.unrounded_by_interval == pytest.approx((10.0, 9.8), rel=0.01)


def test_when_no_more_mixes_are_simulated_one_that_may_still_decide_is_said(monkeypatch):
    monkeypatch.setattr("capplan.planner.pool._MOST", 1)
    close = pooled(hours((0.9, 10.0), (0.1, 9.8)))
    assert len(kept(close)) == 1
    assert close.open_mix == close.load.mix_of_interval[1]
    assert any("might still be the peak" in one.text for one in _of_pool(close))
    apart = pooled(hours((0.9, 10.0), (0.1, 5.0)))
    assert apart.open_mix is None
    assert not any("might still be the peak" in one.text for one in _of_pool(apart))


def test_hours_that_cannot_decide_are_not_simulated():
    pool = pooled(mixed((500.0, 5.0), (5.0, 20.0)))
    assert len(kept(pool)) == 1


def test_seeds_move_the_last_rate_of_a_mix_by_little():
    rates = [
        float(pool.capacity_per_s[pool.mix])
        for pool in (pooled(mixed((100.0,), (20.0,)), "by-load", seed) for seed in range(1, 5))
    ]
    assert np.std(rates) / np.mean(rates) < 0.03


def test_a_pool_that_no_number_of_replicas_serves_is_not_sized():
    hopeless = {**CHAT, "objectives": {"ttft_p99_s": 1.0, "tpot_p99_s": 0.005}}
    pool = pooled(make_forecast(rates=(500.0,), **hopeless))
    assert pool.sized is None
    assert pool.binding.text == "tpot_p99 of chat"
    assert (pool.capacity_per_s == 0).all()
