"""The replicas and the requests that the figures are about, and what the product says of them."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from capplan.files.reader import read
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve, capacity_of_mix
from capplan.planner.demand import demand
from capplan.planner.last_rate import capacity
from capplan.planner.search import Search
from capplan.planner.trial import QUICK, Effort, Stage, Trial
from capplan.records.fleet import Rules
from capplan.records.forecast import Forecast, Lengths, Rate, TimeAxis, TrafficClass
from capplan.records.profile import Profile
from capplan.simulator.arrivals import poisson
from capplan.simulator.replica import simulate
from capplan.simulator.split import simulate_split, starts_s

PROFILES = Path(__file__).parents[2] / "profiles" / "h200-sxm"
DRAFTER = "eagle3"
SEED = 1
STAGE = Stage(simulate, simulate_split, starts_s, poisson, SEED)
LOOSE_TTFT_S = 10.0
"""p99 that binds only where requests come faster than they can be served."""
LOOSE_TPOT_S = 10.0

MODELS = {"moe": "kimi-k2.5-int4-tp8", "dense": "llama-3.1-70b-fp8-tp4"}


@dataclass(frozen=True)
class Workload:
    """Log-normal lengths; acceptance is the profile's for chat."""

    prompt_tokens: float
    prompt_cv: float
    output_tokens: float
    output_cv: float


WORKLOADS = {"chat": Workload(1500, 0.8, 400, 1.0), "reasoning": Workload(1000, 1.0, 4000, 1.0)}


def profile(model: str) -> Profile:
    """A shipped profile by its short name here."""
    return read(PROFILES / f"{MODELS[model]}.yaml", Profile)


def candidate(source: Profile, workload: str, tpot_p99_s: float) -> Candidate:
    """A replica of a profile with its drafter, solved for one class of requests."""
    asked = WORKLOADS[workload]
    traffic = TrafficClass(
        name=workload,
        share=1.0,
        input_tokens=Lengths(
            mean_tokens=asked.prompt_tokens, cv=asked.prompt_cv, max_tokens=32_768.0
        ),
        output_tokens=Lengths(
            mean_tokens=asked.output_tokens, cv=asked.output_cv, max_tokens=32_768.0
        ),
        acceptance_workload="chat",
        objectives={"ttft_p99_s": LOOSE_TTFT_S, "tpot_p99_s": tpot_p99_s},
    )
    forecast = Forecast(
        version=1,
        name=workload,
        model=source.model.name,
        time=TimeAxis(start=dt.datetime(2026, 12, 7, tzinfo=dt.UTC), step_s=3600.0),
        rate=Rate(values_per_s=(1.0,)),
        classes=(traffic,),
    )
    return Candidate.of(source, DRAFTER, demand(forecast))


def curve_of(solved: Candidate, policy: str) -> Curve:
    """The replica under plain decoding or one draft length."""
    (curve,) = policies.curves(policy, solved.replica, solved.constraints)
    return curve


def chosen(solved: Candidate) -> Curve:
    """The replica under what a plan by load would run, which any other policy may run as well."""
    deployment = solved.replica.profile, DRAFTER, None
    search = Search(solved.demand, [deployment], Rules(), STAGE)
    for policy in ("plain", "always"):
        search.best(policy)
    ((_, choice),) = search.best("by-load")
    return choice.curve


def trial_of(solved: Candidate, curve: Curve, effort: Effort = QUICK) -> Trial:
    """Its requests, drawn: the same for every policy and rate."""
    return Trial.of(solved, curve, 0, STAGE, effort)


@dataclass(frozen=True)
class Reached:
    """The last rate [1/s] that keeps the objectives, nought for none, and what breaks above it."""

    rate_per_s: float
    stopped_by: str


def reached(solved: Candidate, curve: Curve) -> Reached:
    """By simulation; nought where the balance finds no rate at all."""
    if capacity_of_mix(curve, 0)[0] == 0:
        return Reached(0.0, "one request alone")
    found = capacity(trial_of(solved, curve))
    return Reached(found.rate_per_s, found.binding.text)
