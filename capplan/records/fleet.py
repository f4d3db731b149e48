"""Supply: what can be bought or is owned, and the rules it is bought by."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from capplan.records.base import Record
from capplan.records.stored import Precision
from capplan.units import (
    AtLeastOne,
    BytesPerSecond,
    Count,
    FlopPerSecond,
    Fraction,
    GpuWatts,
    PositiveBytes,
    PositiveCount,
    PositiveWatts,
    SmallCount,
    UsdPerGpuHour,
    UsdPerKwh,
)


class Gpu(Record):
    """One accelerator. A number nobody published stays out; `sources` names the rest."""

    memory_bytes: PositiveBytes
    """As the driver reports it, not the label."""
    bandwidth_bytes_per_s: BytesPerSecond | None = None
    host_bytes_per_s: BytesPerSecond | None = None
    """From host memory to one GPU, one way."""
    bf16_flop_per_s: FlopPerSecond | None = None
    """Dense, without structured sparsity."""
    fp8_flop_per_s: FlopPerSecond | None = None
    int8_flop_per_s: FlopPerSecond | None = None
    fp4_flop_per_s: FlopPerSecond | None = None
    precisions: tuple[Precision, ...] | None = None
    """What it computes in; None where nobody says."""
    weight_only: tuple[Precision, ...] = ()
    """Widths that engines store weights in and unpack to 16 bits before they compute."""
    tdp_w: GpuWatts
    idle_w: GpuWatts
    sources: dict[str, str]
    """Field to where it was read."""


class Node(Record):
    """One server."""

    gpu: str
    gpus: SmallCount
    nameplate_w: PositiveWatts
    other_idle_w: GpuWatts
    """Fans, processors, network and supply losses at rest, beside the GPUs."""
    other_load_w: GpuWatts
    """The same at full load."""
    rack_units: SmallCount
    network_bytes_per_s: BytesPerSecond | None = None
    """Of the whole node, one way, to other nodes: carries contexts where prefill and decoding have
    engines of their own."""
    sources: dict[str, str]

    @model_validator(mode="after")
    def _load_above_idle(self) -> Self:
        if self.other_load_w < self.other_idle_w:
            raise ValueError("other_load_w must not stay below other_idle_w")
        return self


class Rack(Record):
    """One rack."""

    power_w: PositiveWatts
    units: SmallCount
    reserve: Annotated[Fraction, Field(lt=1)] = 0.0
    """Part of the rack's power that stays free."""
    sources: dict[str, str]


class Site(Record):
    """Where the racks stand."""

    pue: AtLeastOne
    energy_usd_per_kwh: UsdPerKwh
    sources: dict[str, str]


class Price(Record):
    """What a GPU costs while it is held."""

    hold_usd_per_gpu_hour: UsdPerGpuHour
    energy_included: bool
    """A rented GPU's price covers its power; an owned one's does not."""
    sources: dict[str, str]


class Rules(Record):
    """How much more than the bare need is bought."""

    headroom: Annotated[Fraction, Field(le=0.95)] = 0.10
    """Part of a replica's capacity that is not planned on."""
    spare_replicas: Annotated[Count, Field(le=1_000_000)] = 1
    """Replicas that may be lost with the objectives kept."""
    min_replicas: PositiveCount = 1


class Fleet(Record):
    """Hardware, site and rules of a plan."""

    version: Literal[1]
    name: str
    gpus: dict[str, Gpu] = Field(min_length=1)
    nodes: dict[str, Node] = Field(min_length=1)
    rack: Rack
    site: Site
    prices: dict[str, Price]
    """By GPU."""
    rules: Rules = Rules()
    caveats: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_resolve(self) -> Self:
        by_gpu = [node.gpu for node in self.nodes.values()]
        if len(set(by_gpu)) != len(by_gpu):
            raise ValueError("one kind of node a GPU: two nodes hold the same GPU")
        for gpu in [*by_gpu, *self.prices]:
            if gpu not in self.gpus:
                raise ValueError(f"{gpu} is not among gpus")
        for gpu in by_gpu:
            if gpu not in self.prices:
                raise ValueError(f"prices lack {gpu}")
        return self
