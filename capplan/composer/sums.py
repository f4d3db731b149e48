"""Sums over the GPUs that share a model."""

from functools import lru_cache

import numpy as np

from capplan.composer.refusals import Refused
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array

ACROSS = "nccl"
NCCL_DTYPE = "half"


def all_reduce(tables: Silicon, gpus: int, hidden_size: int, count: float) -> Term:
    """A sum of the hidden vectors of all tokens over GPUs of one node.

    Raises:
        Refused: More GPUs than a node has, or none measured together.
    """
    curve = _curve(tables, gpus)

    def at(load: Load) -> Array:
        elements = np.maximum(load.tokens, 1) * hidden_size
        return curve.at(np.maximum(elements, curve.sizes[0]))

    return Term("all_reduce", "sums over GPUs", count, at, (curve.source,))


@lru_cache(maxsize=16)
def _curve(tables: Silicon, gpus: int) -> Curve:
    """By elements, not bytes: the engine's own kernel, or NCCL where that is faster."""
    if gpus > tables.limits.gpus_per_node:
        rule = f"{gpus} GPUs do not share a node of {tables.limits.gpus_per_node}"
        raise Refused("split", f"{rule}; several nodes are not composed")
    own = tables.find("custom_allreduce", num_gpus=gpus)
    if own is None:
        raise Refused("split", f"sums over {gpus} GPUs were not measured", tables.engine)
    rows = f"num_gpus={gpus}, by elements"
    curve = own.curve("message_size", "sums over GPUs", rows)
    library = tables.find(
        "nccl", engine=ACROSS, num_gpus=gpus, op_name="all_reduce", nccl_dtype=NCCL_DTYPE
    )
    if library is None:
        return curve
    other = library.curve("message_size", "sums over GPUs", rows)
    inside = [place for place, size in enumerate(curve.sizes) if size <= other.sizes[-1]]
    sizes = tuple(curve.sizes[place] for place in inside)
    read = np.interp(sizes, other.sizes, other.times_s)
    fastest = np.minimum([curve.times_s[place] for place in inside], read)
    return Curve(sizes, tuple(fastest.tolist()), curve.source)
