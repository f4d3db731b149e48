"""Kernels beside matrices and attention: norms, positions, activations.

They read and write a token's vector once. Nobody published their times engine by engine, but that
of one such kernel was measured on every GPU: scaling a matrix to fp8. It stands for all of them.
"""

from functools import lru_cache

import numpy as np

from capplan.composer.refusals import Refused
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.surface import Array, Surface
from capplan.records.caveat import Source

MEASURED_ON = ("trtllm", "vllm")
"""Engines whose scaling is one fused kernel; SGLang's table times an unfused one."""


def small(tables: Silicon, what: str, width: int, count: float) -> Term:
    """A kernel over `width` numbers of every token.

    Raises:
        Refused: No such kernel was measured on the GPU.
    """
    surface, source = _scaling(tables)

    def at(load: Load) -> Array:
        tokens = np.maximum(load.tokens, surface.axes[0][0])
        return surface.at(tokens, np.clip(width, surface.axes[1][0], surface.axes[1][-1]))

    said = source.model_copy(update={"what": f"{what}, taken to last as long as scaling to fp8"})
    return Term("small", what, count, at, (said,))


@lru_cache(maxsize=16)
def _scaling(tables: Silicon) -> tuple[Surface, Source]:
    for engine in MEASURED_ON:
        if (found := tables.find("scale_matrix", engine=engine)) is not None:
            return found.surface("m", "k"), found.source
    raise Refused("gpu", "has no table of small kernels", tables.gpu)
