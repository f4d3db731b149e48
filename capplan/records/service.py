"""What one replica does under one policy."""

from typing import Literal

from capplan.records.base import Record
from capplan.records.forecast import Objective
from capplan.units import (
    AtLeastOne,
    Count,
    Fraction,
    MeanCount,
    PerSecond,
    Ratio,
    Seconds,
    Slope,
    Tokens,
    TokensPerSecond,
)


class DraftRange(Record):
    """Draft length while this many sequences run."""

    from_batch: Count
    to_batch: Count
    draft_tokens: Count


class LatencyEstimate(Record):
    """One percentile of one class, and what was asked."""

    traffic_class: str
    quantity: Objective
    value_s: Seconds
    low_s: Seconds | None = None
    """Ends of the simulated value's 95 % interval; None where it is modelled or too rare."""
    high_s: Seconds | None = None
    objective_s: Seconds | None
    origin: Literal["modelled", "simulated"] = "modelled"


class BreakEven(Record):
    """What drafts have to bring at one batch to be worth verifying."""

    batch: Count
    draft_tokens: Count
    tokens_per_round: Ratio
    """Below this a round is slower than decoding plainly at the same batch."""
    acceptance: Fraction | None
    """The chance, alike at every position, that brings as many; None where even 1 does not."""


class Elasticity(Record):
    """Part by which a replica's capacity changes for a small part of something else."""

    of: Literal[
        "objectives", "output_tokens", "prompt_tokens", "tokens_per_round", "step_s", "prefill_s"
    ]
    value: Slope
    """d ln capacity / d ln of it; objectives are eased all together."""


class OperatingPoint(Record):
    """A replica at one rate: batch, mean TPOT and percentiles in balance, or as simulated."""

    rate_per_s: PerSecond
    batch: MeanCount
    """Mean sequences decoding."""
    context_tokens: Tokens
    """Mean context of a decoding sequence."""
    draft_tokens: Count
    tokens_per_round: AtLeastOne
    """Mean over the mix, bonus token included."""
    target_efficiency: Ratio
    """Decode step over verification step at this batch; 1 without speculation."""
    decode_s: Seconds
    verify_s: Seconds
    draft_s: Seconds
    round_s: Seconds
    """One round as sequences see it, prefill of other requests included; modelled."""
    prefill_share: Fraction
    """Part of the engine's time that prefill takes; modelled."""
    tpot_mean_s: Seconds
    """Time per output token after the first, mean over the mix."""
    output_tokens_per_s: TokensPerSecond
    break_even_tokens_per_round: Ratio
    """Below this a round is slower than decoding plainly at the same batch."""
    break_even_target_efficiency: Ratio | None
    """Below this too; None where drafting alone takes longer than what it wins."""
    speed_up_at_batch: Ratio
    """Plain time a token over this policy's, at the same batch and without prefill."""
    latencies: tuple[LatencyEstimate, ...]


class Binding(Record):
    """What stops a replica from taking more requests."""

    kind: Literal[
        "objective",
        "memory",
        "engine limit",
        "measured batch",
        "prefill",
        "network",
        "saturation",
    ]
    traffic_class: str | None = None
    quantity: Objective | None = None
    text: str


class BatchLimits(Record):
    """How many sequences may decode at once, and what says so."""

    memory: MeanCount
    engine: Count
    measured: Count


class Service(Record):
    """What one replica does under one policy."""

    profile: str
    gpu: str
    gpus_per_replica: Count
    drafter: str | None
    draft_ranges: tuple[DraftRange, ...]
    capacity_per_s: PerSecond
    """Highest rate at the peak's mix that keeps every objective."""
    capacity_origin: Literal["modelled", "simulated"] = "modelled"
    screened_capacity_per_s: PerSecond
    """What the balance alone gives, before it is held to a simulation."""
    at_capacity: OperatingPoint
    binding: Binding
    batch_limits: BatchLimits
    elasticities: tuple[Elasticity, ...] = ()
    break_even: tuple[BreakEven, ...] = ()
    """By batch, for each draft length that runs."""
    undrafted_classes: tuple[str, ...] = ()
    """Classes that go without speculation beside others that draft."""
