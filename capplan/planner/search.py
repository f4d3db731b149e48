"""Which classes share replicas, and how each pool is served: a screen, then simulation."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from capplan.planner.candidate import Candidate, in_part
from capplan.planner.choices import Choice, best, choices
from capplan.planner.demand import busiest_intervals, of_classes
from capplan.planner.handover import Handover
from capplan.planner.last_rate import capacity, worst
from capplan.planner.pool import Pool, pool
from capplan.planner.sizing import whole
from capplan.planner.trial import QUICK, Stage, Trial
from capplan.records.fleet import Rules
from capplan.records.plan import Demand
from capplan.records.profile import Profile

Classes = tuple[int, ...]
Deployment = tuple[Profile, str | None, Handover | None]
"""A profile, one of its drafters or none, and where prompts are processed if elsewhere."""
Pooling = Literal["auto", "shared", "separate"]

_SIMULATED = 2
"""Partitions that are simulated, for each policy."""
_ENUMERATED = 6
"""Classes up to which every partition is looked at: 203 of them."""


@dataclass
class Search:
    """Deployments, policies and pools of one demand; nothing is solved or simulated twice.

    Attributes:
        demand: All classes.
        deployments: All on one kind of GPU.
        rules: Headroom, spares, minimum.
        stage: To simulate with; None to go by the balance alone.
        pooling: Whether every partition of the classes may be taken.
    """

    demand: Demand
    deployments: list[Deployment]
    rules: Rules
    stage: Stage | None
    pooling: Pooling = "auto"
    _candidates: dict[Classes, list[Candidate]] = field(default_factory=dict)
    _choices: dict[tuple[Classes, str], list[Choice]] = field(default_factory=dict)
    _simulated: dict[Classes, dict[tuple[object, ...], tuple[Choice, float]]] = field(
        default_factory=dict
    )
    _taken: list[list[Classes]] = field(default_factory=list)
    _pools: dict[tuple[object, ...], Pool] = field(default_factory=dict)

    def pools(self, policy: str) -> list[Pool]:
        """The policy's pools, sized; empty where no deployment has a drafter for it."""
        return [self._sized(block, choice) for block, choice in self.best(policy)]

    def best(self, policy: str) -> list[tuple[Classes, Choice]]:
        """The pools that need fewest GPUs, and how each is served; empty where no way exists."""
        possible = self._partitions()
        if not self._ways(possible[0][0], policy):
            return []
        ranked = sorted(possible, key=lambda blocks: self._screened(blocks, policy))
        if self.stage is None:
            return [(block, self._leader(block, policy)) for block in ranked[0]]
        tried = ranked[:_SIMULATED]
        if policy == "by-load":
            tried += [blocks for blocks in self._taken if blocks not in tried]
        plans = [[(block, *self._settled(block, policy)) for block in blocks] for blocks in tried]
        found = min(plans, key=lambda plan: self._total([(way, need) for _, way, need in plan]))
        self._taken.append([block for block, _, _ in found])
        return [(block, way) for block, way, _ in found]

    def _sized(self, block: Classes, choice: Choice) -> Pool:
        key = (block, *choice.key)
        if key not in self._pools:
            demand = of_classes(self.demand, block)
            self._pools[key] = pool(choice, demand, self.rules, self.stage)
        return self._pools[key]

    def _partitions(self) -> list[list[Classes]]:
        """Of the classes that ask for anything; the others go with the first."""
        asking = tuple(p for p, c in enumerate(self.demand.classes) if any(c.rate_per_s))
        silent = tuple(p for p in range(len(self.demand.classes)) if p not in asking)
        return [
            [tuple(sorted(first + silent)), *others]
            for first, *others in partitions(asking, self.pooling)
        ]

    def _ways(self, block: Classes, policy: str) -> list[Choice]:
        key = block, policy
        if key not in self._choices:
            self._choices[key] = choices(policy, self._solved(block), self.rules)
        return self._choices[key]

    def _solved(self, block: Classes) -> list[Candidate]:
        if block not in self._candidates:
            demand = busiest_intervals(of_classes(self.demand, block))
            whole = [
                Candidate.of(profile, drafter, demand, handover=handover)
                for profile, drafter, handover in self.deployments
            ]
            self._candidates[block] = [one for each in whole for one in (each, *in_part(each))]
        return self._candidates[block]

    def _leader(self, block: Classes, policy: str) -> Choice:
        ways = self._ways(block, policy)
        return best((way, way.gpus(way.replicas)) for way in ways)[0]

    def _screened(self, blocks: list[Classes], policy: str) -> tuple[float, int, float]:
        leaders = [self._leader(block, policy) for block in blocks]
        return self._total([(leader, leader.replicas) for leader in leaders])

    def _settled(self, block: Classes, policy: str) -> tuple[Choice, float]:
        """The best way by simulation, and the replicas that it needs before rounding.

        By load anything may run that another policy runs: what was simulated for those is known.
        """
        for way in self._ways(block, policy):
            self._simulate(block, way)
        mine = {way.key for way in self._ways(block, policy)}
        known = [
            (way, need)
            for way, need in self._simulated[block].values()
            if policy == "by-load" or way.key in mine
        ]
        choice, _ = best((way, way.gpus(need)) for way, need in known)
        return choice, self._simulated[block][choice.key][1]

    def _simulate(self, block: Classes, way: Choice) -> None:
        """Replicas by a quick simulation at the mix that decides."""
        assert self.stage is not None
        known = self._simulated.setdefault(block, {})
        if way.key in known:
            return
        trial = Trial.of(way.candidate, way.curve, way.mix, self.stage, QUICK)
        found = capacity(trial)
        if found.rate_per_s == 0:
            known[way.key] = replace(way, alone=worst(trial, found.outcome)[0]), np.inf
            return
        load = way.candidate.replica.load
        here = float(load.rate_per_s[load.mix_of_interval == way.mix].max())
        asked = here * self.demand.peak_minute_over_mean / (1 - self.rules.headroom)
        known[way.key] = way, asked / found.rate_per_s

    def _total(self, pools: list[tuple[Choice, float]]) -> tuple[float, int, float]:
        """GPUs of whole replicas with their spares; then fewer pools; then GPUs unrounded."""
        bought = sum(self._bought(way, replicas) for way, replicas in pools)
        return bought, len(pools), sum(way.gpus(replicas) for way, replicas in pools)

    def _bought(self, way: Choice, replicas: float) -> float:
        if not np.isfinite(replicas):
            return np.inf
        count = whole(replicas, self.rules) + self.rules.spare_replicas
        prefill = 0 if way.prefill is None else way.prefill.spare_replicas
        return way.gpus(count) + prefill * way.gpus_per_replica


def partitions(classes: Classes, pooling: Pooling) -> Iterator[list[Classes]]:
    """Ways to part classes into pools, each once; all together first, if that is one of them.

    Every way of a few classes; of more, each alone beside the rest, and all apart.
    """
    together: list[Classes] = [classes]
    apart: list[Classes] = [(place,) for place in classes]
    if pooling == "separate" or len(classes) == 1:
        yield apart
    elif pooling == "shared":
        yield together
    elif len(classes) <= _ENUMERATED:
        yield from sorted(_all(classes), key=len)
    else:
        yield together
        for place in classes:
            yield [(place,), tuple(other for other in classes if other != place)]
        yield apart


def _all(classes: Classes) -> Iterator[list[Classes]]:
    """Every partition: the first class alone, or with each block of a partition of the rest."""
    if not classes:
        yield []
        return
    first, rest = classes[0], classes[1:]
    for blocks in _all(rest):
        yield [(first,), *blocks]
        for place, block in enumerate(blocks):
            yield [*blocks[:place], (first, *block), *blocks[place + 1 :]]
