"""How the tokens of real text choose experts: measured with a checkpoint, by workload and depth."""

from typing import Literal

from pydantic import Field

from capplan.records.base import Record
from capplan.records.caveat import Origin
from capplan.units import Fraction, MeanCount, PositiveCount, Ratio, SmallCount

LayerGroupName = Literal["early", "middle", "late"]
"""Thirds of the layers that have experts, by depth."""


class DistinctCell(Record):
    """Distinct experts of a layer in one step."""

    batch: SmallCount
    query_tokens: PositiveCount
    """Neighbouring tokens of each sequence."""
    distinct_experts: MeanCount


class DistinctTable(Record):
    """Distinct experts by step."""

    rows: tuple[DistinctCell, ...] = Field(min_length=1)


class LayerGroup(Record):
    """Means over the layers of one third."""

    layers: SmallCount
    across: Fraction
    """Part of a token's experts that a token of another sequence chooses too: popularity."""
    overlap: tuple[Fraction, ...] = Field(min_length=1)
    """The same of two tokens of one sequence, 1, 2, … places apart."""
    popularity: tuple[Ratio, ...] = Field(min_length=11, max_length=11)
    """Tokens that choose an expert over the mean of all experts: least, nine deciles, most."""
    distinct: DistinctTable


class WorkloadRouting(Record):
    """What one set of texts chose."""

    sequences: PositiveCount
    positions: PositiveCount
    """Tokens looked at, of all sequences."""
    layer_groups: dict[LayerGroupName, LayerGroup]


class Likeness(Record):
    """Whether two workloads like the same experts."""

    workload: str
    other: str
    overlap: Fraction
    """Part of a token's experts that a token of the other workload chooses too."""
    cosine: Ratio
    """The same over the geometric mean of both workloads' own overlap across sequences: 1 where
    both like the same experts equally; may exceed 1 by noise."""


class LikenessTable(Record):
    """Pairs of workloads."""

    rows: tuple[Likeness, ...] = Field(min_length=1)


class Routing(Record):
    """What a checkpoint's routers did with real text."""

    experts: PositiveCount
    experts_per_token: PositiveCount
    workloads: dict[str, WorkloadRouting] = Field(min_length=1)
    likeness: LikenessTable | None = None
    """Absent where there is one workload."""
    origin: Origin
