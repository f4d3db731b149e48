"""The highest rate at which one replica keeps every objective, and what stops it there."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from capplan.physics import latency
from capplan.physics.surface import Array
from capplan.planner import latencies
from capplan.planner.latencies import Estimates
from capplan.planner.service import Replica
from capplan.records.forecast import Objective
from capplan.records.plan import Demand
from capplan.records.service import Binding, DraftRange


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
        balance_per_s: The same as far as it grows, lowered to what every larger batch still
            serves: where a switch of draft length makes the rate dip, a rate has two batches in
            balance, and the larger is planned on. NaN beyond. [M, B]
        used: Each constraint's use. [constraints, M, B]
    """

    replica: Replica
    constraints: tuple[Constraint, ...]
    ranges: tuple[DraftRange, ...]
    loaded: bool
    variant: NDArray[np.intp]
    rate_per_s: Array
    balance_per_s: Array
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
            _balance(rate),
            np.array([follow(constraint.used, variant) for constraint in constraints]),
        )

    @property
    def draft_lengths(self) -> list[int]:
        """Draft lengths that run at some batch, rising."""
        return sorted({draft.draft_tokens for draft in self.ranges})

    @property
    def undrafted(self) -> frozenset[int]:
        """Places of classes that go without drafts beside others that draft."""
        return self.replica.variants.undrafted if any(self.draft_lengths) else frozenset()

    def follow(self, values: Array) -> Array:
        """Values at each batch for the variant that runs there. [M, V, B] to [M, B]."""
        return follow(values, self.variant)

    def calibrated(self, factors: Array) -> Self:
        """The curve with what load adds to each constraint's use multiplied, as simulations say.

        Args:
            factors: What load adds as simulated over the same as modelled. [constraints]
        """
        return replace(self, used=latency.amplified(self.used, factors[:, None, None]))


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


def _balance(rate: Array) -> Array:
    """Lower envelope from the right of each mix's rate, up to its highest. [M, B]."""
    lines = np.full_like(rate, np.nan)
    for line, values in zip(lines, rate, strict=True):
        known = len(values) if np.isfinite(values).all() else int(np.argmin(np.isfinite(values)))
        if known:
            top = int(np.argmax(values[:known])) + 1
            line[:top] = np.minimum.accumulate(values[:top][::-1])[::-1]
    return lines


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
    if replica.load.handover is not None:
        found.append(
            Constraint(
                Binding(kind="network", text="contexts come faster than the network carries them"),
                latencies.network_utilisation(replica),
            )
        )
    for place, traffic in enumerate(demand.classes):
        for objective, limit_s in traffic.objectives.items():
            felt = latencies.felt(replica.load, place, objective)[:, None, None]
            used = np.where(felt, estimates[place, objective] / limit_s, 0.0)
            found.append(Constraint(broken(traffic.name, objective), used))
    return tuple(found)


def broken(traffic_class: str, objective: Objective) -> Binding:
    """An objective that stops a replica."""
    return Binding(
        kind="objective",
        traffic_class=traffic_class,
        quantity=objective,
        text=f"{objective.removesuffix('_s')} of {traffic_class}",
    )


def capacity(curve: Curve) -> Capacity:
    """Follows each mix's curve up from one request alone to the first broken limit.

    Between the last batch that keeps everything and the first that does not, the rate is
    interpolated where the worst constraint reaches one.
    """
    found = [capacity_of_mix(curve, mix) for mix in range(len(curve.rate_per_s))]
    rates, stops = zip(*found, strict=True)
    return Capacity(np.array(rates), np.array(stops, dtype=np.intp))


def capacity_of_mix(curve: Curve, mix: int) -> tuple[float, int]:
    """Highest rate of one mix, and what stops it there, as in `Capacity`."""
    balance, used = curve.balance_per_s[mix], curve.used[:, mix]
    known = int(np.isfinite(balance).sum())
    worst = np.where(np.isnan(used), np.inf, used).max(axis=0)
    broken = np.flatnonzero(worst[:known] > 1)
    bad = int(broken[0]) if len(broken) else known
    if bad == len(balance):
        return float(balance[-1]), MEASURED
    before = used[:, bad - 1] if bad else np.zeros(len(used))
    way, stop = _first_crossing(before, used[:, bad])
    if stop >= 0 and np.isinf(used[stop, bad]):
        stop = _run_out(curve, used[:, bad])
    if stop < 0:
        stop = SATURATED if np.isfinite(curve.rate_per_s[mix, bad]) else MEASURED
    if bad == 0:
        return 0.0, stop
    if bad == known:
        return float(balance[bad - 1]), stop
    return float(balance[bad - 1] ** (1 - way) * balance[bad] ** way), stop


def _run_out(curve: Curve, used: Array) -> int:
    """Which resource an endless wait shows to be gone: the one that is used most."""
    resources = [p for p, c in enumerate(curve.constraints) if c.binding.kind != "objective"]
    return max(resources, key=lambda place: np.nan_to_num(used[place]))


def _first_crossing(before: Array, after: Array) -> tuple[float, int]:
    """How far between two batches a constraint first reaches one, and which. -1 for none.

    Where a wait jumps to infinity there is nothing to interpolate: the batch before is the last,
    and what ran out is named rather than the wait that shows it.
    """
    broken = np.flatnonzero(after > 1)
    finite = broken[np.isfinite(after[broken])]
    if len(finite) == 0:
        return 0.0, int(broken[0]) if len(broken) else -1
    low = np.log(np.maximum(before[finite], 1e-12))
    ways = low / (low - np.log(after[finite]))
    first = int(np.argmin(ways))
    return 0.0 if len(finite) < len(broken) else float(ways[first]), int(finite[first])


def largest_measured(curve: Curve, mix: int) -> int:
    """Largest batch that the profile's tables cover for this mix and policy; nought for none."""
    known = np.flatnonzero(np.isfinite(curve.follow(curve.replica.unstretched_s)[mix]))
    return int(curve.replica.batch[known[-1]]) if len(known) else 0


def binding(curve: Curve, mix: int, stopped_by: int) -> Binding:
    """What to say of a stop."""
    if stopped_by == MEASURED:
        text = f"the profile was measured up to a batch of {largest_measured(curve, mix)}"
        return Binding(kind="measured batch", text=text)
    if stopped_by == SATURATED:
        return Binding(kind="saturation", text="a larger batch serves no more requests")
    return curve.constraints[stopped_by].binding
