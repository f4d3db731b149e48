"""Prompts processed by engines of their own: how many of them a pool of decode replicas needs."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from capplan.errors import InfeasibleError
from capplan.physics import lengths
from capplan.physics.engine import Outcome, Starts
from capplan.physics.surface import Array
from capplan.planner.capacity import Curve, broken
from capplan.planner.handover import Handover
from capplan.planner.load import Load
from capplan.planner.trial import Trial, objectives
from capplan.records.fleet import Rules
from capplan.records.forecast import Objective
from capplan.records.plan import Demand, PrefillPool

Which = tuple[int, Objective]
"""A class and an objective of it."""

_BUSIEST = 0.95
"""Part of the time that prefill engines may work: nearer to one, waits say little of the peak."""
_CHANCE = 0.02
"""By which runs at neighbouring rates may differ against their order."""
_EXACT = 1e-9
"""Floating noise that must not buy an engine."""


def prefill_pool(
    trial: Trial, decoded: Outcome, rate_per_s: float, rules: Rules, starts_s: Starts
) -> PrefillPool:
    """The smallest pool that keeps every objective on the time to first token.

    Each request waits for a prefill engine, first come first served, on top of what it took where
    none waits. The requests of the one decode replica stand for those of the whole pool, so that
    bursts meet bursts: rather more waiting than where they spread over many replicas.

    Args:
        trial: A decode replica behind prefill engines; see `handover.behind_prefill`.
        decoded: Its run at the rate that it is planned for, headroom included.
        rate_per_s: Of all decode replicas at the peak. [1/s]
        rules: Headroom on that rate, spares, minimum.
        starts_s: When services start, handed in.

    Raises:
        InfeasibleError: Not even where no prompt waits are the objectives kept.
    """
    prompt_tokens = trial.drawn.prefill_tokens + trial.drawn.cached_tokens
    handover = handover_of(trial.curve)
    work = Work(
        handover,
        rate_per_s,
        float(decoded.prefill_alone_s.mean()),
        float(handover.transfer_s(prompt_tokens).mean()),
    )
    arrival_s = trial.drawn.arrival_s / work.planned_per_s(rules)
    limits = _limits_s(trial, decoded)

    def keeps(servers: int) -> bool:
        outcome = waiting(decoded, arrival_s, servers, starts_s)
        return all(trial.value_s(outcome, *which) <= limit for which, limit in limits.items())

    servers = smallest(keeps, work.fewest(rules))
    return work.pool(servers, rules)


def waiting(decoded: Outcome, arrival_s: Array, servers: int, starts_s: Starts) -> Outcome:
    """A run of a decode replica with what its requests wait for a prefill engine.

    Args:
        decoded: Where none waits.
        arrival_s: At the prefill engines. [requests]
        servers: How many of these.
        starts_s: When services start.
    """
    wait_s = starts_s(arrival_s, decoded.prefill_alone_s, servers) - arrival_s
    return replace(decoded, ttft_s=decoded.ttft_s + wait_s, queue_s=wait_s)


def prefill_gpu_w(pool: PrefillPool, load: Load, factor: float = 1.0) -> Array | None:
    """Mean watts of one GPU of the prefill engines; None where they are not known. [intervals].

    An engine at work draws what it does in the largest chunk that a step takes.

    Args:
        pool: All of it runs and shares the load.
        load: Of the decode replicas.
        factor: On the rates.
    """
    assert load.handover is not None
    profile, power = load.handover.profile, load.handover.surfaces.prefill_power
    if profile.power is None or power is None:
        return None
    largest = power.clamped(0, profile.limits.max_batched_tokens, above=True)
    working_w, idle_w = power.at(largest, power.axes[1][0]), profile.power.idle_w
    prompt_s = load.shares @ (load.prefilled_s @ lengths.WEIGHTS)
    busy = load.rate_per_s * factor * prompt_s[load.mix_of_interval] / pool.replicas
    return np.asarray(idle_w + np.minimum(busy, 1.0) * (working_w - idle_w))


@dataclass(frozen=True)
class Work:
    """What prompts ask of their engines.

    Attributes:
        handover: The engines.
        rate_per_s: Requests at the peak. [1/s]
        prefill_s: What a prompt takes, on average. [s]
        transfer_s: What its context takes to travel. [s]
    """

    handover: Handover
    rate_per_s: float
    prefill_s: float
    transfer_s: float

    def planned_per_s(self, rules: Rules) -> float:
        """The rate with headroom [1/s]."""
        return self.rate_per_s / (1 - rules.headroom)

    def fewest(self, rules: Rules) -> int:
        """Engines below which prompts, or contexts on their way, come faster than they go."""
        busy = self.planned_per_s(rules) * max(self.prefill_s, self.transfer_s)
        return max(math.ceil(busy / _BUSIEST - _EXACT), rules.min_replicas)

    def pool(self, servers: int, rules: Rules) -> PrefillPool:
        """What is bought, for a number of engines that suffices."""
        profile, busy = self.handover.profile, self.rate_per_s * self.prefill_s
        return PrefillPool(
            profile=profile.name,
            gpu=profile.deployment.gpu,
            gpus_per_replica=profile.deployment.gpus_per_replica,
            replicas_unrounded=busy,
            replicas_at_peak=servers,
            spare_replicas=rules.spare_replicas,
            replicas=servers + rules.spare_replicas,
            utilisation=busy / servers,
            transfer_mean_s=self.transfer_s,
        )


def smallest(keeps: Callable[[int], bool], fewest: int) -> int:
    """Smallest number from `fewest` on that keeps: more engines never wait longer."""
    low, high = fewest - 1, fewest
    while not keeps(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def handover_of(curve: Curve) -> Handover:
    """Where the prompts of a decode replica are processed."""
    handover = curve.replica.load.handover
    assert handover is not None
    return handover


def first_tokens(demand: Demand) -> list[tuple[int, Objective, float]]:
    """Objectives on the time to first token: class, name and limit [s]."""
    return [one for one in objectives(demand) if one[1].startswith("ttft")]


def in_vain(demand: Demand, which: Iterable[Which]) -> InfeasibleError:
    """No number of prefill engines keeps these."""
    names = ", ".join(broken(demand.classes[place].name, one).text for place, one in which)
    return InfeasibleError(
        f"forecast {demand.forecast}: not even where no prompt waits is kept: {names}"
    )


def _limits_s(trial: Trial, decoded: Outcome) -> dict[Which, float]:
    """The objectives; what chance at a neighbouring rate has already taken stays taken [s].

    Raises:
        InfeasibleError: More than chance has.
    """
    alone_s = {
        (place, objective): (trial.value_s(decoded, place, objective), limit_s)
        for place, objective, limit_s in first_tokens(trial.demand)
    }
    lost = [which for which, (value, limit) in alone_s.items() if value > limit * (1 + _CHANCE)]
    if lost:
        raise in_vain(trial.demand, lost)
    return {which: max(pair) for which, pair in alone_s.items()}
