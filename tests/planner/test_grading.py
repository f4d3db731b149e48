"""What a plan says against itself."""

from dataclasses import replace

from capplan.planner.chain import Asked, plan
from capplan.planner.trial import Effort, Stage
from capplan.records.plan import Plan
from capplan.simulator.arrivals import poisson
from capplan.simulator.replica import simulate
from capplan.simulator.split import simulate_split, starts_s
from straight import make_fleet, make_forecast, make_profile

FEW = Effort(3_000, 0, 3_000, 4e6)
STAGE = Stage(simulate, simulate_split, starts_s, poisson, seed=1, effort=FEW)
SLOW_PREFILL = make_profile(prefill_s_per_token=2e-4)


def planned(stage: Stage, cv: float, ttft_p99_s: float, tpot_p50_s: float) -> Plan:
    asked = make_forecast(
        rates=(20.0,),
        prompt=300.0,
        output=50.0,
        cv=cv,
        objectives={"ttft_p99_s": ttft_p99_s, "tpot_p50_s": tpot_p50_s},
    )
    return plan(asked, [SLOW_PREFILL], make_fleet(), Asked(("plain",), stage=stage), "test")


def said_of_last_rates(found: Plan) -> list[str]:
    return [caveat.text for caveat in found.caveats if caveat.about == "last rate"]


def test_a_last_rate_that_too_few_requests_leave_open_is_said():
    (text,) = said_of_last_rates(planned(STAGE, cv=2.0, ttft_p99_s=1.5, tpot_p50_s=10.0))
    assert "a run of 3,000 requests" in text
    assert "ttft_p99 of chat" in text


def test_what_a_split_deployment_takes_for_granted_is_said():
    asked = make_forecast(rates=(20.0,), prompt=300.0, output=50.0)
    fleet = make_fleet()
    node = fleet.nodes["node"].model_copy(update={"network_bytes_per_s": 4e11})
    fleet = fleet.model_copy(update={"nodes": {"node": node}})
    said = {
        how: [c.about for c in plan(asked, [SLOW_PREFILL], fleet, how_asked, "test").caveats]
        for how in ("beside", "dedicated")
        for how_asked in (Asked(("plain",), prefill=how),)
    }
    assert "engines for prompts" in said["dedicated"]
    assert "engines for prompts" not in said["beside"]


def test_one_that_is_settled_is_not():
    many = replace(STAGE, effort=Effort(100_000, 0, 100_000, 4e7))
    assert said_of_last_rates(planned(many, cv=0.2, ttft_p99_s=100.0, tpot_p50_s=0.020)) == []
