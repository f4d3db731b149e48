"""Weights at a precision: how wide they are, and what a GPU computes with them in."""

from typing import Final

from capplan.records.fleet import Gpu
from capplan.records.stored import Precision, Stored

BITS: Final[dict[Precision, float]] = {
    "bf16": 16,
    "fp8": 8 + 32 / 128**2,
    "int8": 8,
    "int4": 4 + 16 / 128,
    "mxfp4": 4 + 8 / 32,
    "nvfp4": 4 + 8 / 16,
}
"""A number with its scales: a float32 for 128x128 (DeepSeek-V3's blocks), a float16 for 128
(GPTQ's and AWQ's habit), eight bits for 32 and for 16; a scale a row of int8 is nothing."""
NARROWED: Final = ("attention", "dense", "routed_experts", "shared_experts", "prediction")
"""What quantised checkpoints narrow: matrices of layers."""
RATES: Final[dict[Precision, str]] = {
    "bf16": "bf16_flop_per_s",
    "fp8": "fp8_flop_per_s",
    "int8": "int8_flop_per_s",
    "mxfp4": "fp4_flop_per_s",
    "nvfp4": "fp4_flop_per_s",
}


def at_precision(precision: Precision) -> Stored:
    """Widths when all matrices of the layers are stored at a precision, and the rest in 16 bits."""
    widths = dict.fromkeys(NARROWED, BITS[precision])
    return Stored(scheme=precision, **widths)


def formats(stored: Stored) -> dict[str, Precision]:
    """The format of each narrowed component.

    Of a component that mixes formats the mean width decides.
    """
    return {part: _format(getattr(stored, part), stored.scheme.lower()) for part in NARROWED}


def _format(bits: float, scheme: str) -> Precision:
    if bits > 12:
        return "bf16"
    if bits > 5.5:
        return "int8" if "int8" in scheme else "fp8"
    if "nvfp4" in scheme or "float4 in groups of 16" in scheme:
        return "nvfp4"
    # DeepSeek-V4 says fp4 of its experts, compressed-tensors float4: 32 numbers share a scale.
    floating = "mxfp4" in scheme or "float4" in scheme or "experts in" in scheme
    return "mxfp4" if floating else "int4"


def arithmetic(precision: Precision, gpu: Gpu) -> Precision | None:
    """What a GPU multiplies in when weights have a precision; None where it cannot run them.

    A GPU of which nothing is said is taken to run everything but four bits natively.
    """
    known = gpu.precisions
    if known is None:
        return precision if BITS[precision] > 5.5 else "bf16"
    if precision in known:
        return precision
    return "bf16" if precision in gpu.weight_only else None


def flop_per_s(precision: Precision, gpu: Gpu) -> float | None:
    """Dense arithmetic at a precision; None where the fleet does not say [FLOP/s]."""
    rate = RATES.get(precision)
    found: float | None = getattr(gpu, rate) if rate else None
    return found
