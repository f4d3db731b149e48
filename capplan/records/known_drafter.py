"""A drafter that is known for some models, and what others saw of how often it is right."""

from typing import Annotated, Literal

from pydantic import Field

from capplan.records.base import Record
from capplan.records.caveat import Source
from capplan.records.drafter_model import DrafterModel
from capplan.units import AtLeastOne


class AcceptanceCurve(Record):
    """Published tokens a round by draft length, of one drafter on one workload."""

    workload: str
    """Such as coding, as forecasts name it."""
    thinking: bool | None = None
    """Whether the model thought before it answered; None where that was not said."""
    tokens_per_round: Annotated[tuple[AtLeastOne, ...], Field(min_length=1)]
    """Mean tokens a round, bonus token included, at 1, 2, … drafts."""
    conditions: str
    """Weights, engine and GPU that it was seen on."""
    source: Source


class KnownDrafter(Record):
    """What drafts for some models."""

    version: Literal[1]
    name: str
    drafts_for: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of models."""
    drafter: DrafterModel | None = None
    """None for the head that comes with the model's own checkpoint."""
    curves: tuple[AcceptanceCurve, ...] = ()
    """Published acceptance; empty where nobody published any that may be shipped."""
