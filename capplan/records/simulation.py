"""Prediction and simulation side by side."""

from typing import Literal

from capplan.records.base import Record
from capplan.records.caveat import Caveat
from capplan.records.parts import TpotParts, TtftParts
from capplan.units import Count, MeanCount, PerSecond, Ratio, Seconds


class Compared(Record):
    """One quantity as the planner has it and as the simulation saw it."""

    quantity: str
    """Such as tpot_p99_s; latencies end in their unit."""
    traffic_class: str | None = None
    predicted: MeanCount | None
    """None for waits that grow without end."""
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


Steady = Literal["batch", "rate_per_s", "output_tokens_per_s", "tpot_mean_s", "ttft_mean_s"]


class Mean(Record):
    """One quantity of a closed loop, by the law and as simulated."""

    quantity: Steady
    predicted: MeanCount
    simulated: MeanCount


class InFlight(Record):
    """A replica with a number of requests always in flight: means of its steady state."""

    in_flight: Count
    requests: Count
    limit: str | None
    """What keeps more of them from decoding."""
    compared: tuple[Mean, ...]


class SimulatedPool(Record):
    """One pool at several loads, and the rate at which it stops keeping the objectives."""

    classes: tuple[str, ...]
    profile: str
    predicted_capacity_per_s: PerSecond
    simulated_capacity_per_s: PerSecond
    stopped_by: str
    """Which objective the simulation breaks first."""
    loads: tuple[SimulatedLoad, ...]
    in_flight: tuple[InFlight, ...] = ()
    ttft: tuple[TtftParts, ...]
    """At the last rate that keeps the objectives; empty where none does."""
    tpot: tuple[TpotParts, ...]
    """Likewise."""


class SimulatedPolicy(Record):
    """The pools of one policy; none where it is infeasible."""

    policy: str
    infeasible: str | None = None
    pools: tuple[SimulatedPool, ...] = ()


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
