"""Supply: what can be bought or is owned, and the rules it is bought by."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from capplan.records.base import Record
from capplan.units import (
    AtLeastOne,
    Bytes,
    BytesPerSecond,
    Count,
    FlopPerSecond,
    Fraction,
    PositiveCount,
    UsdPerGpuHour,
    UsdPerKwh,
    Watts,
)


class Gpu(Record):
    """One accelerator. A number nobody published stays out; `sources` names the rest."""

    memory_bytes: Bytes
    """As the driver reports it, not the label."""
    bandwidth_bytes_per_s: BytesPerSecond | None = None
    bf16_flop_per_s: FlopPerSecond | None = None
    """Dense, without structured sparsity."""
    fp8_flop_per_s: FlopPerSecond | None = None
    tdp_w: Watts
    idle_w: Watts
    sources: dict[str, str]
    """Field to where it was read."""


class Node(Record):
    """One server."""

    gpu: str
    gpus: PositiveCount
    nameplate_w: Watts
    other_idle_w: Watts
    """Fans, processors, network and supply losses at rest, beside the GPUs."""
    other_load_w: Watts
    """The same at full load."""
    rack_units: PositiveCount
    sources: dict[str, str]

    @model_validator(mode="after")
    def _load_above_idle(self) -> Self:
        if self.other_load_w < self.other_idle_w:
            raise ValueError("other_load_w must not stay below other_idle_w")
        return self


class Rack(Record):
    """One rack."""

    power_w: Watts
    units: PositiveCount
    reserve: Fraction = 0.0
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

    headroom: Annotated[Fraction, Field(lt=1)] = 0.10
    """Part of a replica's capacity that is not planned on."""
    spare_replicas: Count = 1
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
