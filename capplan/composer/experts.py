"""Routed experts: read off the table of a layer's shape, by tokens and by distinct experts.

Balanced rows choose min(tokens · experts_per_token, experts) different experts, so that each row
has a known U until all are touched, and beyond that only its tokens grow. A load with U distinct
experts costs what the balanced row with as many does, and what arithmetic adds beyond.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtr

from capplan.composer.asked import Asked
from capplan.composer.refusals import Refused
from capplan.composer.term import Term
from capplan.physics.experts import Routing, distinct_experts
from capplan.physics.load import Load
from capplan.physics.operators import Silicon, Table, joined
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array
from capplan.records.architecture import Moe
from capplan.records.caveat import Caveat

DTYPES: Final = {
    "bf16": ("bfloat16",),
    "fp8": ("fp8",),
    "fp8_block": ("fp8_block",),
    "int4": ("int4_wo",),
    "nvfp4": ("nvfp4",),
    "mxfp4": ("w4a8_mxfp4_mxfp8", "w4a16_mxfp4"),
}
"""Precisions of experts by the tables' names, the one preferred first."""
WITHIN: Final = 0.33
"""Overlap of tokens of one sequence (Cohere's mean over three lags, 128 experts)."""
OPERATORS: Final = 8
"""Operators that the host launches for a layer's routed experts: choice, sorting, quantising and
two products with what lies between and after them."""
ASSUMED: Final = Caveat(
    about="routing",
    text=(
        "How alike tokens choose experts was assumed: those of one sequence share 33 % of their "
        "experts (Cohere, 128 experts), those of different sequences no more than by chance. Real "
        "overlap differs from model to model; give it where it was measured."
    ),
)


@dataclass(frozen=True)
class RoutedExperts:
    """One layer's routed experts on the GPU with most of them to read."""

    balanced: Curve
    """By tokens of the whole step."""
    routing: Routing
    groups: int
    """Groups of GPUs that experts are dealt out to."""

    def at(self, load: Load) -> Array:
        """Time of one layer [s], shape of the load; NaN beyond the table."""
        touched = distinct_experts(self.routing, load.batch, load.query_tokens, load.prefill_tokens)
        touched = self.groups * most_loaded(touched, self.routing.experts, self.groups)
        per_token, tokens = self.routing.experts_per_token, np.maximum(load.tokens, 1)
        all_touched = self.routing.experts / per_token
        last = self.balanced.sizes[-1]
        as_many = np.clip(touched / per_token, 1, all_touched)
        beyond = np.clip(tokens, all_touched, np.maximum(all_touched, last))
        time_s = (
            self.balanced.at(np.minimum(as_many, last))
            + self.balanced.at(np.minimum(beyond, last))
            - self.balanced.at(min(all_touched, last))
        )
        return np.where(tokens > last, np.nan, time_s)


def most_loaded(touched: Array, experts: int, groups: int) -> Array:
    """Distinct experts of the group with most of them, which all others wait for.

    Args:
        touched: Distinct experts of the step.
        experts: Of a layer.
        groups: Groups that experts are dealt out to evenly.

    Returns:
        Expected maximum, as of independent normal counts whose spread is that of drawing
        `touched` of all experts without regard to groups. Shape of `touched`.
    """
    mean = touched / groups
    spread = np.sqrt(np.maximum(0.0, mean * (1 - touched / experts) * (1 - 1 / groups)))
    return np.asarray(np.minimum(mean + _highest_of(groups) * spread, experts / groups))


@lru_cache(maxsize=16)
def _highest_of(count: int) -> float:
    """Expected maximum of as many standard normal numbers."""
    at = np.linspace(-8.0, 8.0, 4001)
    below = ndtr(at) ** count
    return float(np.trapezoid(np.where(at > 0, 1 - below, -below), at))


def routed_experts(asked: Asked, tables: Silicon, shape: Moe, count: int) -> Term:
    """The routed experts of a layer.

    Args:
        asked: The deployment.
        tables: Of its GPU and engine.
        shape: Of the whole model, not of one GPU's share.
        count: Layers.

    Raises:
        Refused: No table has such experts, so split, at this precision.
    """
    precision = asked.experts or asked.weights
    curve = _balanced(tables, asked.model.hidden_size, shape, asked.split.slices,
                      asked.split.expert, precision)  # fmt: skip
    layer = RoutedExperts(curve, asked.routing or assumed_routing(shape), asked.split.expert)
    return Term("sparse", "routed experts", count, layer.at, (curve.source,), operators=OPERATORS)


def assumed_routing(shape: Moe) -> Routing:
    """The default: independent sequences, alike tokens within one."""
    across = shape.experts_per_token / shape.experts
    return Routing(shape.experts, shape.experts_per_token, across, max(WITHIN, across))


@lru_cache(maxsize=64)
def _balanced(
    tables: Silicon, hidden: int, shape: Moe, slices: int, expert: int, precision: str
) -> Curve:
    wanted = {
        "hidden_size": shape.latent_size or hidden,
        "inter_size": shape.expert_width,
        "topk": shape.experts_per_token,
        "num_experts": shape.experts,
        "moe_tp_size": slices,
        "moe_ep_size": expert,
        "distribution": "balanced",
    }
    for dtype in DTYPES.get(precision, ()):
        found = _own_kernels(tables, moe_dtype=dtype, **wanted)
        if found is not None:
            rows = ", ".join(f"{name}={value}" for name, value in wanted.items())
            return found.curve("num_tokens", "routed experts", f"moe_dtype={dtype}, {rows}")
    rows = ", ".join(f"{name}={value}" for name, value in list(wanted.items())[:-1])
    raise Refused("model", "has experts of which there is no table", f"{precision}, {rows}")


def _own_kernels(tables: Silicon, **wanted: object) -> Table | None:
    """Rows of the engine, and of kernels that bear its name in others' tables.

    TensorRT-LLM's kernels for Blackwell were timed within SGLang and vLLM, not in its own table.
    """
    found = [tables.find("moe", **wanted)]
    for engine in tables.engines:
        if engine == tables.engine:
            continue
        other = tables.find("moe", engine=engine, **wanted)
        if other is not None:
            named = np.array([tables.engine in str(name) for name in other["kernel_source"]])
            found.append(other.rows(named) if named.any() else None)
    kept = [table for table in found if table is not None]
    return joined(kept) if kept else None
