"""Layers of experts, fitted to evenly routed rows and tested on the others."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from capplan.physics.moe_layer import MoeRows, moe_layer_errors
from capplan.physics.operators import TIME, Silicon, Table
from capplan.physics.surface import Array

SHAPE: Final = (
    "kernel_source", "moe_dtype", "hidden_size", "inter_size", "moe_tp_size", "num_experts", "topk",
)  # fmt: skip
"""Columns that tell one layer and kernel from another; ranks that share experts out do not."""
FITTED: Final = "balanced"
TESTED: Final = "power_law_"
"""Routings whose generator is known."""

Key = tuple[object, ...]


@dataclass(frozen=True)
class LayerErrors:
    """One layer on the routings that it was not fitted to."""

    gpu: str
    engine: str
    experts: int
    experts_per_token: int
    errors: Array
    """Predicted over published time, less one. [rows]"""


def layer_errors(tables: Silicon) -> Iterator[LayerErrors]:
    """Every layer that an engine has a table of, once: in the newest version that timed it.

    Args:
        tables: Of one GPU and engine.
    """
    seen: set[Key] = set()
    for table in tables.read(tables.engine, "moe"):
        found = {key: rows for key, rows in _layers(table) if key not in seen}
        seen.update(found)
        for rows in found.values():
            layer = rows.experts, rows.experts_per_token
            errors = moe_layer_errors(rows, FITTED)[1]
            yield LayerErrors(tables.gpu, tables.engine, *layer, errors)


def _layers(table: Table) -> Iterator[tuple[Key, MoeRows]]:
    """Layers that were timed evenly routed and otherwise."""
    routing = table["distribution"].astype(str)
    known = (routing == FITTED) | np.char.startswith(routing, TESTED)
    whole = table["num_experts"] % table["moe_ep_size"] == 0
    kept = table.rows(known & whole)
    tokens, ranks, time_s = (kept[name] for name in ("num_tokens", "moe_ep_size", TIME))
    routing = routing[known & whole]
    places: dict[Key, list[int]] = {}
    for place, key in enumerate(zip(*(kept[name].tolist() for name in SHAPE), strict=True)):
        places.setdefault(key, []).append(place)
    for key, here in places.items():
        if {FITTED} < set(routing[here].tolist()):
            *_, experts, per_token = key
            assert isinstance(experts, int)
            assert isinstance(per_token, int)
            yield (
                key,
                MoeRows(experts, per_token, tokens[here], ranks[here], routing[here], time_s[here]),
            )
