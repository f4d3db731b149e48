"""What the GPUs of a replica tell one another: sums, and the exchange before and after experts."""

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
        return curve.within(np.maximum(elements, curve.sizes[0]))

    return Term("all_reduce", "sums over GPUs", count, at, (curve.source,))


@lru_cache(maxsize=16)
def _curve(tables: Silicon, gpus: int) -> Curve:
    """By elements, not bytes: the engine's own kernel, or NCCL where that is faster."""
    _one_node(tables, gpus)
    own = tables.find("custom_allreduce", num_gpus=gpus)
    if own is None:
        raise Refused("split", f"sums over {gpus} GPUs were not measured", tables.engine)
    rows = f"num_gpus={gpus}, by elements"
    curve = own.curve("message_size", "sums over GPUs", rows)
    other = _library(tables, gpus, "all_reduce")
    inside = [place for place, size in enumerate(curve.sizes) if size <= other.sizes[-1]]
    sizes = tuple(curve.sizes[place] for place in inside)
    read = np.interp(sizes, other.sizes, other.times_s)
    fastest = np.minimum([curve.times_s[place] for place in inside], read)
    return Curve(sizes, tuple(fastest.tolist()), curve.source)


def exchange(tables: Silicon, gpus: int, hidden_size: int, count: float) -> Term:
    """Tokens of GPUs with sequences of their own, gathered before the experts and summed after.

    Every GPU gets all tokens and runs its own experts on them, as TensorRT-LLM and SGLang do
    within a node by default.

    Raises:
        Refused: More GPUs than a node has, or none measured together.
    """
    _one_node(tables, gpus)
    curves = [_library(tables, gpus, name) for name in ("all_gather", "reduce_scatter")]

    def at(load: Load) -> Array:
        elements = np.maximum(load.tokens, 1) * hidden_size
        first = curves[0].sizes[0]
        both = (curve.within(np.maximum(elements, first)) for curve in curves)
        return np.asarray(sum(both, np.zeros(())))

    sources = tuple(curve.source for curve in curves)
    return Term("all_to_all", "exchange of tokens with experts", count, at, sources)


def _library(tables: Silicon, gpus: int, name: str) -> Curve:
    wanted = {"num_gpus": gpus, "op_name": name, "nccl_dtype": NCCL_DTYPE}
    found = tables.find("nccl", engine=ACROSS, **wanted)
    if found is None:
        raise Refused("split", f"{name} over {gpus} GPUs was not measured", tables.gpu)
    return found.curve("message_size", name, f"op_name={name}, num_gpus={gpus}, by elements")


def _one_node(tables: Silicon, gpus: int) -> None:
    if gpus > tables.limits.gpus_per_node:
        rule = f"{gpus} GPUs do not share a node of {tables.limits.gpus_per_node}"
        raise Refused("split", f"{rule}, and several nodes are not composed")
