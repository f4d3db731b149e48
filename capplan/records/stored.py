"""How many bits a checkpoint spends on a number."""

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from capplan.records.base import Record
from capplan.units import NO_SUFFIX

Bits = Annotated[FiniteFloat, Field(gt=0, le=64), NO_SUFFIX]
"""Mean over all numbers of a component, with the scales that belong to them."""

Precision = Literal["bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4"]
"""Formats of weights; bf16 stands for every format of 16 bits or more."""


class Stored(Record):
    """Stored width of a number by component [bit]."""

    scheme: str
    """In words: bf16, fp8 in blocks of 128x128, nvfp4, …"""
    embedding: Bits = 16
    attention: Bits = 16
    dense: Bits = 16
    routed_experts: Bits = 16
    shared_experts: Bits = 16
    router: Bits = 16
    norms: Bits = 16
    head: Bits = 16
    lookup_tables: Bits = 16
    prediction: Bits = 16
    kv_cache: Bits | None = None
    """What the checkpoint asks the cache to be; None where it does not say."""
