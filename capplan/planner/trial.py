"""A replica's load simulated: requests drawn once, and what each objective comes to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from capplan.errors import Complaint, InputError
from capplan.physics.engine import Engine, Outcome, Requests, Simulate, SimulateSplit, Starts
from capplan.physics.percentiles import Percentile, histogram_percentile, mean, percentile
from capplan.physics.surface import Array
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve, capacity_of_mix
from capplan.planner.handover import behind_prefill
from capplan.planner.latencies import ALWAYS_SHOWN, PERCENTILES
from capplan.planner.operating_point import Observed, batch_at, variant_at
from capplan.planner.rehearsal import engine, requests
from capplan.records.forecast import Objective
from capplan.records.plan import Demand
from capplan.records.service import LatencyEstimate

Arrivals = Callable[[int, np.random.Generator], Array]
"""Arrival times of a number of requests, in mean gaps."""

_WARM_UP, _COOL_DOWN = 0.15, 0.05
"""Parts of the requests, by arrival, that are not counted: the engine fills and drains."""
_PER_SEQUENCE = 40
"""Requests for each sequence of the batch: with fewer the engine is filling most of the time."""


@dataclass(frozen=True)
class Effort:
    """How many requests a run takes.

    Attributes:
        requests: At least.
        rare: Of the rarest class, where the cap allows.
        most_requests: At most.
        most_rounds: At most: where few sequences run at a time, fewer requests are drawn.
    """

    requests: float
    rare: float
    most_requests: float
    most_rounds: float


QUICK = Effort(20_000, 2_500, 60_000, 4e6)
"""Enough to rank alternatives that see the same requests."""
THOROUGH = Effort(200_000, 20_000, 800_000, 4e7)
"""Enough to begin with, and at most, for a last rate that seeds move by less than 3 %."""


@dataclass(frozen=True)
class Stage:
    """What trials are run with.

    Attributes:
        simulate: Runs requests through an engine.
        simulate_split: Runs them through prefill engines and one that decodes.
        starts_s: When services of several servers start.
        arrivals: Draws arrival times.
        seed: Of all draws.
        effort: Of what decides a plan.
    """

    simulate: Simulate
    simulate_split: SimulateSplit
    starts_s: Starts
    arrivals: Arrivals
    seed: int
    effort: Effort = THOROUGH


@dataclass(frozen=True)
class Trial:
    """A replica with its requests drawn once: every rate sees the same ones."""

    curve: Curve
    demand: Demand
    mix: int
    drawn: Requests
    run: Callable[[float], Outcome]

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        curve: Curve,
        mix: int,
        stage: Stage,
        effort: Effort | None = None,
    ) -> Self:
        """Draws the requests of a mix and tabulates the replica; effort instead of the stage's."""
        count = _enough(curve, mix, effort or stage.effort)
        arrival_s = stage.arrivals(count, np.random.default_rng(stage.seed))
        drawn = requests(candidate, curve, mix, arrival_s, stage.seed)
        tables = engine(curve, mix)
        _check_fit(candidate.demand, drawn, tables)
        handover = curve.replica.load.handover
        run = stage.simulate
        if handover is not None:
            run = behind_prefill(handover, stage.simulate_split)
        return cls(
            curve,
            candidate.demand,
            mix,
            drawn,
            lambda rate_per_s: run(tables, drawn, rate_per_s),
        )

    def counted(self, place: int) -> NDArray[np.bool_]:
        """Requests of a class that are counted. [requests]."""
        count = len(self.drawn.arrival_s)
        inside = np.zeros(count, dtype=bool)
        inside[int(_WARM_UP * count) : int((1 - _COOL_DOWN) * count)] = True
        return np.asarray(inside & (self.drawn.traffic_class == place))

    def samples(self, outcome: Outcome, place: int, metric: str) -> Array:
        """A class's times to first token, or times per output token after it. [s]."""
        here = self.counted(place)
        if metric == "ttft":
            return outcome.ttft_s[here]
        after = self.drawn.output_tokens[here] - 1
        return outcome.decode_s[here][after > 0] / after[after > 0]

    def value_s(self, outcome: Outcome, place: int, objective: Objective) -> float:
        """An objective's percentile; nought for a class that has no such latency."""
        metric, name, _ = objective.rsplit("_", 2)
        if not self.felt(place, metric):
            return 0.0
        if metric == "chunk_gap":
            return gap_percentile(outcome, PERCENTILES[name])
        return float(np.quantile(self.samples(outcome, place, metric), PERCENTILES[name]))

    def felt(self, place: int, metric: str) -> bool:
        """Whether a class sent requests, with tokens to wait for."""
        here = self.counted(place)
        fewest = 1 if metric == "ttft" else 2
        return bool((self.drawn.output_tokens[here] >= fewest).any())


def _check_fit(demand: Demand, drawn: Requests, tables: Engine) -> None:
    """A request that does not fit the cache alone could never end.

    Raises:
        InputError: Naming the class.
    """
    whole = drawn.prefill_tokens + drawn.cached_tokens + drawn.output_tokens
    largest = int(np.argmax(whole))
    room = tables.cache_tokens - float(tables.draft_tokens.max())
    if whole[largest] > room:
        place = int(drawn.traffic_class[largest])
        raise InputError(
            [
                Complaint(
                    place=f"forecast {demand.forecast}",
                    key=f"classes.{place}.input_tokens.max_tokens",
                    rule=f"prompt and answer must fit a cache of {room:,.0f} tokens",
                    found=f"{whole[largest]:,.0f}",
                    remedy="shorten what the class may ask for, or give a replica more memory",
                )
            ]
        )


def gap_percentile(outcome: Outcome, percentile: float) -> float:
    """A percentile of the gaps between streamed chunks, over all streams. [s]."""
    return histogram_percentile(outcome.gap_edges_s, outcome.gaps, percentile)


def objectives(demand: Demand) -> Iterator[tuple[int, Objective, float]]:
    """Every objective: class, name and limit [s]."""
    for place, traffic in enumerate(demand.classes):
        for objective, limit_s in traffic.objectives.items():
            yield place, objective, limit_s


def simulated_latencies(trial: Trial, outcome: Outcome) -> tuple[LatencyEstimate, ...]:
    """Every objective of every class and the three that a report always shows, with intervals.

    Without those that a class cannot have: it sent nothing, or answers of one token.
    """
    found = []
    for place, traffic in enumerate(trial.demand.classes):
        for objective in dict.fromkeys([*traffic.objectives, *ALWAYS_SHOWN]):
            if not trial.felt(place, objective.rsplit("_", 2)[0]):
                continue
            seen = simulated(trial, outcome, place, objective)
            found.append(
                LatencyEstimate(
                    traffic_class=traffic.name,
                    quantity=objective,
                    value_s=seen.value,
                    low_s=seen.low,
                    high_s=seen.high,
                    objective_s=traffic.objectives.get(objective),
                    origin="simulated",
                )
            )
    return tuple(found)


def tpot_mean(trial: Trial, seen: Outcome) -> Percentile:
    """Decoding time over tokens after the first: the mean over tokens, as the planner's is."""
    inside = np.any([trial.counted(place) for place in range(len(trial.demand.classes))], axis=0)
    after = trial.drawn.output_tokens[inside] - 1
    if after.sum() == 0:
        return Percentile(0.0, None, None)
    weighted = seen.decode_s[inside] / after.mean()
    return mean(weighted)


def observed(trial: Trial, seen: Outcome) -> Observed:
    """What a plan shows of a run instead of the balance."""
    return Observed(seen.mean_batch, tpot_mean(trial, seen).value, simulated_latencies(trial, seen))


def simulated(trial: Trial, outcome: Outcome, place: int, objective: Objective) -> Percentile:
    """A percentile of a class's latency, with its interval where requests are enough. [s]."""
    metric, name, _ = objective.rsplit("_", 2)
    if metric == "chunk_gap":
        return Percentile(gap_percentile(outcome, PERCENTILES[name]), None, None)
    return percentile(trial.samples(outcome, place, metric), PERCENTILES[name])


def _enough(curve: Curve, mix: int, effort: Effort) -> int:
    """How many requests settle a 99th percentile of the rarest class."""
    rate, _ = capacity_of_mix(curve, mix)
    batch = float(batch_at(curve, mix, rate))
    share = curve.replica.load.shares[mix]
    rarest = float(share[share > 0].min())
    wanted = max(effort.requests, _PER_SEQUENCE * batch, effort.rare / rarest)
    variant = variant_at(curve, batch)
    rounds = float(
        share
        @ (curve.replica.load.decode_tokens / curve.replica.variants.tokens_per_round[variant])
    )
    affordable = effort.most_rounds * max(batch, 1.0) / max(rounds, 1.0)
    return int(min(wanted, effort.most_requests, max(affordable, 2_000)))
