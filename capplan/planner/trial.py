"""A replica's load simulated: what each objective comes to, and the rate that keeps them all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from capplan.errors import Complaint, InputError
from capplan.physics.engine import Engine, Outcome, Requests, Simulate
from capplan.physics.percentiles import histogram_percentile
from capplan.physics.surface import Array
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve, capacity_of_mix
from capplan.planner.latencies import PERCENTILES
from capplan.planner.operating_point import batch_at
from capplan.planner.rehearsal import engine, requests
from capplan.records.forecast import Objective
from capplan.records.plan import Demand

Arrivals = Callable[[int, np.random.Generator], Array]
"""Arrival times of a number of requests, in mean gaps."""

_WARM_UP, _COOL_DOWN = 0.15, 0.05
"""Parts of the requests, by arrival, that are not counted: the engine fills and drains."""
_FEWEST = 20_000
_PER_SEQUENCE = 40
"""Requests for each sequence of the batch: with fewer the engine is filling most of the time."""
_RARE = 2_500
"""Requests of the rarest class, enough for its 99th percentile."""
_MOST_ROUNDS = 4e6
"""Rounds of one run at most: where few sequences run at a time, fewer requests are drawn."""
_TOLERANCE = 0.005


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
        simulate: Simulate,
        arrivals: Arrivals,
        seed: int,
    ) -> Self:
        """Draws the requests of a mix and tabulates the replica."""
        count = _enough(curve, mix)
        arrival_s = arrivals(count, np.random.default_rng(seed))
        drawn = requests(candidate, curve, mix, arrival_s, seed)
        tables = engine(curve, mix)
        _check_fit(candidate.demand, drawn, tables)
        return cls(curve, candidate.demand, mix, drawn, lambda rate: simulate(tables, drawn, rate))

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
        """An objective's percentile; nought for a class that sent nothing."""
        metric, name, _ = objective.rsplit("_", 2)
        if metric == "chunk_gap":
            return gap_percentile(outcome, PERCENTILES[name])
        found = self.samples(outcome, place, metric)
        return float(np.quantile(found, PERCENTILES[name])) if len(found) else 0.0


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


def worst(trial: Trial, outcome: Outcome) -> tuple[float, str]:
    """The objective that is used most: value over limit, and what to call it."""
    uses = [
        (
            trial.value_s(outcome, place, objective) / limit_s,
            f"{objective.removesuffix('_s')} of {trial.demand.classes[place].name}",
        )
        for place, objective, limit_s in objectives(trial.demand)
    ]
    return max(uses)


def capacity(trial: Trial) -> tuple[float, str]:
    """Highest rate that keeps every objective, by halving on its logarithm. [1/s].

    The same requests come at every rate, faster or slower, so that chance does not make the answer
    jump. Starts at what the balance predicts.

    Returns:
        The rate, nought where even a twentieth of the prediction is too much, and the objective
        that breaks above it.
    """
    predicted, _ = capacity_of_mix(trial.curve, trial.mix)
    low, high, stopped_by = _bracket(trial, predicted)
    while high / max(low, 1e-12) > 1 + _TOLERANCE and low > 0:
        middle = float(np.sqrt(low * high))
        use, label = worst(trial, trial.run(middle))
        if use <= 1:
            low = middle
        else:
            high, stopped_by = middle, label
    return low, stopped_by


def _bracket(trial: Trial, predicted: float) -> tuple[float, float, str]:
    """A rate that keeps the objectives and one, at most a quarter above, that does not."""
    # Beyond what the batch can balance at all, a run is finite only because its requests are.
    most = float(np.nanmax(trial.curve.balance_per_s[trial.mix]))
    rate = min(predicted, most)
    use, label = worst(trial, trial.run(rate))
    if use <= 1:
        while use <= 1:
            if rate >= most:
                return rate, rate, "requests come faster than they can be served"
            low, rate = rate, min(rate * 1.25, most)
            use, label = worst(trial, trial.run(rate))
        return low, rate, label
    while use > 1:
        high, stopped_by, rate = rate, label, rate / 1.25
        if rate < predicted / 20:
            return 0.0, high, stopped_by
        use, label = worst(trial, trial.run(rate))
    return rate, high, stopped_by


def _enough(curve: Curve, mix: int) -> int:
    """How many requests settle a 99th percentile of the rarest class."""
    rate, _ = capacity_of_mix(curve, mix)
    batch = float(batch_at(curve, mix, rate))
    share = curve.replica.load.shares[mix]
    rarest = float(share[share > 0].min())
    wanted = max(_FEWEST, _PER_SEQUENCE * batch, _RARE / rarest)
    variant = int(curve.variant[np.abs(curve.replica.batch - max(batch, 1.0)).argmin()])
    rounds = float(
        share
        @ (curve.replica.load.decode_tokens / curve.replica.variants.tokens_per_round[variant])
    )
    return int(min(wanted, max(_MOST_ROUNDS * max(batch, 1.0) / max(rounds, 1.0), 2_000)))
