"""The highest rate at which one replica keeps every objective, and what stops it there."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from capplan.physics.surface import Array
from capplan.planner import latencies
from capplan.planner.latencies import Estimates
from capplan.planner.service import Replica
from capplan.records.plan import Binding, Demand, DraftRange


@dataclass(frozen=True)
class Constraint:
    """One limit: what it is, and how much of it is used.

    Attributes:
        binding: What to say when it stops the replica.
        used: Value over limit; above one is broken, NaN is not known. [M, V, B]
    """

    binding: Binding
    used: Array


@dataclass(frozen=True)
class Curve:
    """A replica under one policy: a variant chosen for each batch.

    Attributes:
        ranges: Draft length by running batch.
        loaded: Whether a drafter is in memory.
        variant: Which variant runs at each batch. [B]
        rate_per_s: Requests that keep the batch in balance. [M, B]
        rising: Batches from the first on over which the rate is known and grows. [M]
        used: Each constraint's use. [constraints, M, B]
    """

    replica: Replica
    constraints: tuple[Constraint, ...]
    ranges: tuple[DraftRange, ...]
    loaded: bool
    variant: NDArray[np.intp]
    rate_per_s: Array
    rising: NDArray[np.intp]
    used: Array

    @classmethod
    def of(
        cls,
        replica: Replica,
        constraints: tuple[Constraint, ...],
        ranges: tuple[DraftRange, ...],
        *,
        loaded: bool,
    ) -> Self:
        """Follows the draft length that the ranges give each batch."""
        running = np.maximum(np.round(replica.batch), 1)
        variant = np.zeros(len(running), dtype=np.intp)
        for draft in ranges:
            inside = (running >= draft.from_batch) & (running <= draft.to_batch)
            variant[inside] = replica.variants.index(draft.draft_tokens) if loaded else 0
        rate = follow(replica.rate_per_s, variant)
        return cls(
            replica,
            constraints,
            ranges,
            loaded,
            variant,
            rate,
            _rising(rate),
            np.array([follow(constraint.used, variant) for constraint in constraints]),
        )

    def follow(self, values: Array) -> Array:
        """Values at each batch for the variant that runs there. [M, V, B] to [M, B]."""
        return follow(values, self.variant)


@dataclass(frozen=True)
class Capacity:
    """Highest rate of each mix.

    Attributes:
        rate_per_s: Nought where not even one request alone is served in time. [M]
        stopped_by: Index of the constraint; -1 where measurement ends, -2 where the rate stops
            growing with the batch. [M]
    """

    rate_per_s: Array
    stopped_by: NDArray[np.intp]


MEASURED, SATURATED = -1, -2


def follow(values: Array, variant: NDArray[np.intp]) -> Array:
    """Values at each batch for the variant that runs there. [M, V, B] to [M, B]."""
    return values[:, variant, np.arange(len(variant))]


def _rising(rate: Array) -> NDArray[np.intp]:
    """How many batches from the first on have a known rate above the one before. [M]."""
    good = np.isfinite(rate) & (np.diff(rate, axis=1, prepend=-np.inf) > 0)
    return np.asarray(np.where(good.all(axis=1), rate.shape[1], np.argmin(good, axis=1)))


def constraints(replica: Replica, demand: Demand, estimates: Estimates) -> tuple[Constraint, ...]:
    """Every objective of every class, memory, the engine's batch and prefill."""
    # Less than one sequence on average is still one sequence while it runs.
    batch = np.broadcast_to(np.maximum(replica.batch, 1.0), replica.rate_per_s.shape)
    engine = replica.profile.limits.max_batch
    found = [
        Constraint(
            Binding(kind="memory", text="the batch fills the memory left for KV cache"),
            batch / replica.memory_limit[..., None],
        ),
        Constraint(
            Binding(kind="engine limit", text=f"the engine runs at most {engine} sequences"),
            batch / engine,
        ),
        Constraint(
            Binding(
                kind="prefill",
                text="prompts need more of the step's token budget than decoding leaves",
            ),
            latencies.prefill_utilisation(replica),
        ),
    ]
    for place, traffic in enumerate(demand.classes):
        for objective, limit_s in traffic.objectives.items():
            found.append(
                Constraint(
                    Binding(
                        kind="objective",
                        traffic_class=traffic.name,
                        quantity=objective,
                        text=f"{objective.removesuffix('_s')} of {traffic.name}",
                    ),
                    estimates[place, objective] / limit_s,
                )
            )
    return tuple(found)


def capacity(curve: Curve) -> Capacity:
    """Follows each mix's curve up from one request alone to the first broken limit.

    Between the last batch that keeps everything and the first that does not, the rate is
    interpolated where the worst constraint reaches one.
    """
    rates, stops = [], []
    for mix in range(len(curve.rate_per_s)):
        rate, stop = _one(curve.rate_per_s[mix], int(curve.rising[mix]), curve.used[:, mix])
        rates.append(rate)
        stops.append(stop)
    return Capacity(np.array(rates), np.array(stops, dtype=np.intp))


def _one(rate: Array, rising: int, used: Array) -> tuple[float, int]:
    worst = np.where(np.isnan(used), np.inf, used).max(axis=0)
    kept = np.flatnonzero(worst[:rising] > 1)
    bad = int(kept[0]) if len(kept) else rising
    stop = _reason(rate, used, bad)
    if bad == 0:
        return 0.0, stop
    last = bad - 1
    if stop < 0 or not np.isfinite(worst[bad]):
        return float(rate[last]), stop
    before, after = np.log(worst[last]), np.log(worst[bad])
    way = -before / (after - before)
    return float(np.exp((1 - way) * np.log(rate[last]) + way * np.log(rate[bad]))), stop


def _reason(rate: Array, used: Array, bad: int) -> int:
    """What breaks at a batch: a constraint, the end of measurement, or saturation."""
    if bad == len(rate):
        return MEASURED
    broken = np.where(np.isnan(used[:, bad]), 0.0, used[:, bad])
    if broken.max() > 1:
        return int(np.argmax(broken))
    return SATURATED if np.isfinite(rate[bad]) else MEASURED


def binding(curve: Curve, stopped_by: int) -> Binding:
    """What to say of a stop."""
    if stopped_by == MEASURED:
        largest = f"{curve.replica.batch[-1]:.0f}"
        return Binding(
            kind="measured batch",
            text=f"the profile was measured up to a batch of {largest}",
        )
    if stopped_by == SATURATED:
        return Binding(kind="saturation", text="a larger batch serves no more requests")
    return curve.constraints[stopped_by].binding
