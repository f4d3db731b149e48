"""Which rows of the experts' tables a layer is fitted to."""

from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any, Final

import numpy as np

from capplan.composer.refusals import Refused
from capplan.physics.moe_layer import MoeLayer, MoeRows, fit_moe_layer
from capplan.physics.operators import Silicon, Table, joined
from capplan.records.caveat import Source

DTYPES: Final = {
    "bf16": ("bfloat16",),
    "fp8": ("fp8",),
    "fp8_block": ("fp8_block",),
    "int4": ("int4_wo",),
    "nvfp4": ("nvfp4",),
    "mxfp4": ("w4a8_mxfp4_mxfp8", "w4a16_mxfp4"),
}
"""Precisions of experts by the tables' names, the one preferred first."""
EVEN: Final = "balanced"
"""Rows that are left out: in models that limit a token to groups of experts (DeepSeek-V3), evenly
drawn scores touch half the experts that the row claims."""


@dataclass(frozen=True)
class Wanted:
    """The layer whose rows are looked for."""

    hidden_size: int
    expert_width: int
    experts: int
    experts_per_token: int
    slices: int
    """GPUs that share an expert."""
    groups: int
    """Groups of GPUs that experts are dealt out to."""
    precision: str

    @property
    def matrices(self) -> dict[str, Any]:
        """What rows must hold: an expert's matrices, and how they are sliced."""
        return {
            "hidden_size": self.hidden_size,
            "inter_size": self.expert_width,
            "moe_tp_size": self.slices,
        }


@dataclass(frozen=True)
class Fitted:
    """A layer's fit, the error it leaves and where its rows stand."""

    layer: MoeLayer
    error: float
    """Median over the rows of the layer's own width, relative."""
    source: Source


@lru_cache(maxsize=64)
def fitted(tables: Silicon, wanted: Wanted) -> Fitted:
    """The fit of a layer; where none was timed, of one with the same matrices, more or fewer.

    Raises:
        Refused: No layer of such matrices was timed.
    """
    for dtype in DTYPES.get(wanted.precision, ()):
        found = _own_kernels(tables, moe_dtype=dtype, **wanted.matrices)
        found = found and found.rows(found["distribution"] != EVEN)
        if found and wanted.groups in found.values("moe_ep_size"):
            return _fit(found, wanted, dtype)
    text = ", ".join(f"{name}={value}" for name, value in wanted.matrices.items())
    found_text = f"{wanted.precision}, {text}, moe_ep_size={wanted.groups}"
    raise Refused("model", "has experts of which there is no table", found_text)


def _fit(found: Table, wanted: Wanted, dtype: str) -> Fitted:
    own = found.where(moe_ep_size=wanted.groups)
    experts, per_token = min(
        set(zip(own["num_experts"].tolist(), own["topk"].tolist(), strict=True)),
        key=lambda pair: (
            abs(log(pair[0] / wanted.experts)),
            abs(log(pair[1] / wanted.experts_per_token)),
        ),
    )
    rows = _fastest(found.where(num_experts=experts, topk=per_token), experts, per_token)
    layer = fit_moe_layer(rows, wanted.groups)
    here = rows.of(rows.ranks == wanted.groups)
    summed = here.terms() @ np.array(layer.coefficients_s)
    predicted = summed * np.interp(here.tokens, layer.sizes, layer.over_sum)
    text = ", ".join(f"{name}={value}" for name, value in wanted.matrices.items())
    source = found.said(
        "routed experts",
        f"moe_dtype={dtype}, num_experts={experts}, topk={per_token}, {text}, "
        f"moe_ep_size={wanted.groups}, routed by power laws; fitted a + b U + tiles + tokens",
    )
    return Fitted(layer, float(np.median(np.abs(predicted / here.time_s - 1))), source)


def _fastest(table: Table, experts: int, per_token: int) -> MoeRows:
    """The fastest kernel at each size, width and routing."""
    best: dict[tuple[str, int, int], float] = {}
    keys = zip(table["distribution"], table["num_tokens"], table["moe_ep_size"], strict=True)
    for key, time_s in zip(keys, table["latency_s"], strict=True):
        best[key] = min(time_s, best.get(key, np.inf))
    distribution, tokens, ranks = (np.array(column) for column in zip(*best, strict=True))
    return MoeRows(experts, per_token, tokens, ranks, distribution, np.array(list(best.values())))


def _own_kernels(tables: Silicon, **values: Any) -> Table | None:
    """Rows of the engine, and of kernels that bear its name in others' tables.

    TensorRT-LLM's kernels for Blackwell were timed within SGLang and vLLM, not in its own table.
    """
    found = [tables.find("moe", **values)]
    for engine in tables.engines:
        other = None if engine == tables.engine else tables.find("moe", engine=engine, **values)
        if other is not None:
            named = np.array([tables.engine in str(name) for name in other["kernel_source"]])
            found.append(other.rows(named) if named.any() else None)
    kept = [table for table in found if table is not None]
    return joined(kept) if kept else None
