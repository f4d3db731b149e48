"""A drafter that was trained apart from the model it drafts for."""

from typing import Literal

from capplan.records.architecture import DraftHead
from capplan.records.base import Record
from capplan.records.caveat import Source
from capplan.records.stored import Bits
from capplan.units import PositiveCount


class DrafterModel(Record):
    """One drafter's anatomy."""

    version: Literal[1]
    name: str
    hidden_size: PositiveCount
    vocabulary: PositiveCount
    """Of the model it drafts for."""
    head: DraftHead
    weight_bits: Bits
    source: Source
