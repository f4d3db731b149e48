"""Kernels beside matrices and attention: norms, positions, activations.

They read and write a token's vector once. Nobody published their times engine by engine, but that
of one such kernel was measured on every GPU: scaling a matrix to fp8. It stands for all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from capplan.composer.refusals import Refused
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.surface import Array, Surface
from capplan.records.caveat import Source

MEASURED_ON = ("trtllm", "vllm")
"""Engines whose scaling is one fused kernel; SGLang's table times an unfused one."""


NARROW: Final = {"fp8", "fp8_block", "nvfp4"}
"""Precisions whose products narrow their inputs too."""


@dataclass(frozen=True)
class Quantising:
    """Time of narrowing a product's inputs [s], shape of the load, and where it stands."""

    at: Callable[[Load], Array]
    source: Source


def small(tables: Silicon, what: str, width: int, count: float) -> Term:
    """A kernel over `width` numbers of every token.

    Raises:
        Refused: No such kernel was measured on the GPU.
    """
    surface, source = _scaling(tables)
    said = source.model_copy(update={"what": f"{what}, taken to last as long as scaling to fp8"})
    return Term("small", what, count, lambda load: _at(surface, load, width), (said,))


def quantising(tables: Silicon, precision: str, width: int) -> Quantising | None:
    """The kernel that narrows `width` inputs of a product of every token; None where none runs.

    TensorRT-LLM's checkpoints of fp8 and nvfp4 hold their activations' scales, so that the kernel
    before narrows them. vLLM and SGLang find scales as they go, and so do all engines in blocks.

    Raises:
        Refused: No such kernel was measured on the GPU.
    """
    held = tables.engine == "trtllm" and precision != "fp8_block"
    if precision not in NARROW or held:
        return None
    surface, source = _scaling(tables)
    said = source.model_copy(update={"what": "narrowing of a product's inputs"})
    return Quantising(lambda load: _at(surface, load, width), said)


def _at(surface: Surface, load: Load, width: int) -> Array:
    tokens = np.maximum(load.tokens, surface.axes[0][0])
    return surface.at(tokens, np.clip(width, surface.axes[1][0], surface.axes[1][-1]))


@lru_cache(maxsize=16)
def _scaling(tables: Silicon) -> tuple[Surface, Source]:
    for engine in MEASURED_ON:
        if (found := tables.find("scale_matrix", engine=engine)) is not None:
            return found.surface("m", "k"), found.source
    raise Refused("gpu", "has no table of small kernels", tables.gpu)
