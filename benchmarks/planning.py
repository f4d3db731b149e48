"""How long planning takes: the last rate of a replica, and two weeks of three classes.

Prints processor seconds of one core, warm, the fastest of several runs, beside the bars. The
forecast of two weeks is three-classes with a busiest hour and a trend of its own for each class, so
that its 336 hours bring 336 mixes. Another busy core beside this one can double the seconds.
"""

import json
import math
import time
from collections.abc import Callable

from capplan.cli.simulated import DEFAULT_SEED, stage
from capplan.files.catalogue import find, profiles_for
from capplan.files.reader import read, read_forecast
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.chain import POLICIES, Asked, plan
from capplan.planner.demand import busiest_intervals, demand
from capplan.planner.last_rate import settled
from capplan.planner.load import Load
from capplan.planner.trial import Stage
from capplan.records.fleet import Fleet
from capplan.records.forecast import Forecast, Rate
from capplan.records.profile import Profile

HOURS = 336
BARS_S = {"search_of_one_class": 1.0, "search_of_a_mix": 6.0, "plan": 20.0, "screened_plan": 1.0}
RUNS = {"search_of_one_class": 5, "search_of_a_mix": 3, "plan": 2, "screened_plan": 5}
DAYS = {  # busiest hour, requests a second then, and growth from day to day
    "code-completion": (11, 45.0, 0.004),
    "chat": (20, 40.0, -0.003),
    "agent": (3, 15.0, 0.01),
}


def profiles(forecast: Forecast) -> list[Profile]:
    """Every shipped one of the forecast's model."""
    return [read(path, Profile) for path in profiles_for(forecast.model)]


def two_weeks() -> Forecast:
    """Three classes, each with its own busiest hour and trend."""
    day = read_forecast(find("forecasts", "three-classes"))
    classes = tuple(
        one.model_copy(update={"share": None, "rate": Rate(values_per_s=rates(*DAYS[one.name]))})
        for one in day.classes
    )
    return day.model_copy(update={"name": "two-weeks", "rate": None, "classes": classes})


def rates(peak_hour: int, peak_per_s: float, growth: float) -> tuple[float, ...]:
    """A wave from a fifth of the peak up to it, every day."""
    waves = [0.6 + 0.4 * math.cos(2 * math.pi * (hour - peak_hour) / 24) for hour in range(HOURS)]
    return tuple(peak_per_s * wave * (1 + growth) ** (hour / 24) for hour, wave in enumerate(waves))


def searched(name: str, policy: str, simulated: Stage) -> Callable[[], object]:
    """The last rate of one replica, its requests drawn anew."""
    forecast = read_forecast(find("forecasts", name))
    profile = profiles(forecast)[0]
    candidate = Candidate.of(
        profile, next(iter(profile.drafters)), busiest_intervals(demand(forecast))
    )
    curve = policies.curves(policy, candidate.replica, candidate.constraints)[0]
    mix = candidate.replica.load.busiest_mix()
    return lambda: settled(candidate, curve, mix, simulated)


def planned(forecast: Forecast, simulated: Stage | None) -> Callable[[], object]:
    """A plan with plain, always and by load, classes pooled as is best."""
    known, fleet = profiles(forecast), read(find("fleets", "dgx-h200"), Fleet)
    asked = Asked(POLICIES, stage=simulated)
    return lambda: plan(forecast, known, fleet, asked, "benchmark")


def fastest_s(run: Callable[[], object], runs: int) -> float:
    """Processor time of the fastest run, after one that compiles."""
    best = math.inf
    run()
    for _ in range(runs):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    """Prints one JSON object."""
    simulated = stage(DEFAULT_SEED)
    if simulated is None:
        raise SystemExit("needs numba: pip install 'capplan[fast]'")
    forecast = two_weeks()
    timed = {
        "search_of_one_class": searched("servegen-m-large", "plain", simulated),
        "search_of_a_mix": searched("three-classes", "always:3", simulated),
        "screened_plan": planned(forecast, None),
        "plan": planned(forecast, simulated),
    }
    found = {name: fastest_s(run, RUNS[name]) for name, run in timed.items()}
    print(
        json.dumps(
            {
                "mixes": len(Load.of(demand(forecast)).shares),
                **{
                    name: {
                        "seconds": round(seconds, 3),
                        "bar_s": BARS_S[name],
                        "bar_kept": seconds <= BARS_S[name],
                    }
                    for name, seconds in found.items()
                },
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
