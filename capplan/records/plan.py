"""What follows from a forecast, a profile and a fleet: one record a step, all kept in the plan."""

import datetime as dt
from typing import Literal

from capplan.records.acceptance import Acceptance
from capplan.records.base import Record
from capplan.records.caveat import Caveat, OriginKind
from capplan.records.forecast import Objective
from capplan.records.parts import TpotParts, TtftParts
from capplan.records.service import OperatingPoint, Service
from capplan.units import (
    AtLeastOne,
    Count,
    Fraction,
    Joules,
    JoulesPerToken,
    PerSecond,
    Ratio,
    Seconds,
    Tokens,
    UsdPerHour,
    UsdPerMillionTokens,
    Watts,
)


class ClassDemand(Record):
    """One class over time."""

    name: str
    rate_per_s: tuple[PerSecond, ...]
    """Mean of each interval, after growth."""
    mean_prompt_tokens: Tokens
    mean_output_tokens: Tokens
    max_prompt_tokens: Tokens
    prompt_tokens: tuple[Tokens, ...]
    """Quantiles, at the probabilities of physics.lengths."""
    output_tokens: tuple[Tokens, ...]
    prefix_reuse: Fraction
    acceptance_workload: str | None
    acceptance: dict[str, Acceptance] | None
    objectives: dict[Objective, Seconds]


class Demand(Record):
    """Requests a second, interval by interval, class by class."""

    forecast: str
    start: dt.datetime
    step_s: Seconds
    peak_minute_over_mean: AtLeastOne
    classes: tuple[ClassDemand, ...]


class Sizing(Record):
    """Replicas over time."""

    unrounded_by_interval: tuple[Ratio, ...]
    replicas_by_interval: tuple[Count, ...]
    """Needed in each interval, headroom included, spares not."""
    peak_interval: Count
    peak_rate_per_s: PerSecond
    """Busiest minute of the peak interval."""
    replicas_at_peak: Count
    spare_replicas: Count
    replicas: Count


class Placement(Record):
    """Whole nodes and racks."""

    gpus: Count
    """Bought, stranded ones included."""
    gpus_in_replicas: Count
    gpus_stranded: Count
    nodes: Count
    nodes_unrounded: Ratio
    nodes_per_rack: Count
    racks: Count
    racks_unrounded: Ratio


class PowerDraw(Record):
    """Watts over time; IT power unless the name says facility."""

    it_w: tuple[Watts, ...]
    """Mean of each interval."""
    peak_it_w: Watts
    """In the busiest minute."""
    mean_it_w: Watts
    peak_facility_w: Watts
    mean_facility_w: Watts
    nameplate_w: Watts
    tdp_w: Watts
    """Sum of the GPUs' design power."""
    facility_energy_j: Joules
    """Over the forecast."""
    facility_energy_j_per_token: JoulesPerToken
    """Over output tokens."""


class Cost(Record):
    """Money while the fleet stands."""

    total_usd_per_hour: UsdPerHour
    energy_usd_per_hour: UsdPerHour
    """Part of the total; nought where the GPU price covers it."""
    output_usd_per_million_tokens: UsdPerMillionTokens
    blended_usd_per_million_tokens: UsdPerMillionTokens
    """Prompt and output tokens together."""


class GpuRange(Record):
    """GPUs when every stated band is at its good end, and at its bad end.

    None where the bad end keeps the objectives with no fleet at all.
    """

    low_gpus: Count
    high_gpus: Count | None


class PrefillPool(Record):
    """Engines that only process prompts, for a pool whose replicas only decode."""

    profile: str
    gpu: str
    gpus_per_replica: Count
    replicas_unrounded: Ratio
    """Engines that the peak's prompts keep busy, without headroom or waiting."""
    replicas_at_peak: Count
    """As many keep every time to first token, headroom included."""
    spare_replicas: Count
    replicas: Count
    utilisation: Fraction
    """At the peak with the spares lost."""
    transfer_mean_s: Seconds
    """Time in which a prompt's context travels to a decode replica."""


class PoolPlan(Record):
    """Classes that share replicas."""

    classes: tuple[str, ...]
    service: Service
    at_peak: OperatingPoint
    """A replica in the busiest minute with the spares lost."""
    sizing: Sizing
    prefill: PrefillPool | None = None
    """Where prompts are processed, if not on the pool's own replicas."""
    ttft: tuple[TtftParts, ...] = ()
    """Where time to first token at the peak comes from; only from a simulation."""
    tpot: tuple[TpotParts, ...] = ()


class PolicyPlan(Record):
    """One policy, carried through every step; or why it cannot be."""

    policy: str
    infeasible: str | None = None
    pools: tuple[PoolPlan, ...] = ()
    placement: Placement | None = None
    power: PowerDraw | None = None
    cost: Cost | None = None
    gpu_range: GpuRange | None = None


class OriginLine(Record):
    """Where one quantity of the plan comes from."""

    quantity: str
    kind: OriginKind | Literal["interpolated", "modelled", "simulated", "given"]
    text: str
    sources: tuple[str, ...] = ()
    """Addresses, or files of a package."""


class Default(Record):
    """A value that a file left out and the plan uses."""

    file: Literal["forecast", "fleet"]
    key: str
    value: str


class Verdict(Record):
    """The answer."""

    policy: str
    sentence: str
    reason: str
    flips: str | None = None
    """What would change the answer."""


class Plan(Record):
    """Everything that a report shows; `-o` keeps it."""

    version: Literal[1] = 1
    capplan: str
    """Version of the program."""
    forecast: str
    model: str
    fleet: str
    purchase_grade: bool
    """Whether every percentile is simulated on step times that were measured."""
    grade: str
    """What keeps it from that, or what it rests on."""
    seed: Count | None
    """Of the simulations; None where the balance alone sized the fleet."""
    demand: Demand
    policies: tuple[PolicyPlan, ...]
    verdict: Verdict
    origins: tuple[OriginLine, ...]
    defaults: tuple[Default, ...]
    caveats: tuple[Caveat, ...]


class Portfolio(Record):
    """Plans made together on one fleet: the object that `--format json` prints."""

    version: Literal[1] = 1
    plans: tuple[Plan, ...]
