"""Prediction and simulation side by side."""

from typing import Literal

from capplan.records.base import Record
from capplan.records.caveat import Caveat
from capplan.units import Count, Fraction, MeanCount, PerSecond, Ratio, Seconds


class Compared(Record):
    """One quantity as the planner has it and as the simulation saw it."""

    quantity: str
    """Such as tpot_p99_s; latencies end in their unit."""
    traffic_class: str | None = None
    predicted: MeanCount
    simulated: MeanCount
    low: MeanCount | None
    """Ends of the simulated value's interval; None where sections are too few for one."""
    high: MeanCount | None
    objective_s: Seconds | None = None


class SimulatedLoad(Record):
    """A replica at one rate."""

    rate_per_s: PerSecond
    load: Ratio
    """Rate over the predicted capacity."""
    requests: Count
    compared: tuple[Compared, ...]
    keeps_objectives: bool
    """By the simulation."""


class TtftParts(Record):
    """Where a percentile of time to first token comes from: means over requests near it."""

    traffic_class: str
    percentile: Literal["p50", "p99"]
    ttft_s: Seconds
    queue_s: Seconds
    """Waiting: for the running round, behind other prompts, for a slot or for cache."""
    prefill_s: Seconds
    """What the prompt's chunks take on an engine that does nothing else."""
    interference_s: Seconds
    """The rest of the steps that carried the chunks: decoding sequences and other prompts."""
    preempted: Fraction
    """Part of these requests that lost their cache at some time."""


class SimulatedPolicy(Record):
    """One policy at several loads, and the rate at which it stops keeping the objectives."""

    policy: str
    profile: str
    infeasible: str | None = None
    predicted_capacity_per_s: PerSecond | None = None
    simulated_capacity_per_s: PerSecond | None = None
    stopped_by: str | None = None
    """Which objective the simulation breaks first."""
    loads: tuple[SimulatedLoad, ...] = ()
    ttft: tuple[TtftParts, ...] = ()


class Simulation(Record):
    """What `capplan simulate` prints."""

    version: Literal[1] = 1
    capplan: str
    forecast: str
    model: str
    seed: Count
    compiled: bool
    """Whether numba compiled the simulator."""
    policies: tuple[SimulatedPolicy, ...]
    caveats: tuple[Caveat, ...]
