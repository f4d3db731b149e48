"""Layers of experts, fitted to evenly routed rows and tested on the others."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from capplan.physics.moe_layer import MoeRows, moe_layer_errors
from capplan.physics.operators import Silicon, Table
from capplan.records.backtest import Predicted

SHAPE: Final = (
    "moe_dtype", "kernel_source", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size",
)  # fmt: skip
"""Columns that tell one layer and kernel from another."""


def layer_rows(tables: Silicon, every: int) -> Iterator[Predicted]:
    """Rows of an engine's newest table whose routing was not fitted.

    Args:
        tables: Of one GPU and engine.
        every: Of so many layers one is tested.
    """
    found = tables.read(tables.engine, "moe")
    if not found:
        return
    newest = found[0]
    for layer in _layers(newest)[::every]:
        rows = newest.where(**layer)
        yield from _tested(rows, tables, ", ".join(f"{key}={layer[key]}" for key in layer))


def _layers(table: Table) -> list[dict[str, object]]:
    columns = zip(*(table[name].tolist() for name in SHAPE), strict=True)
    return [dict(zip(SHAPE, values, strict=True)) for values in dict.fromkeys(columns)]


def _tested(table: Table, tables: Silicon, layer: str) -> Iterator[Predicted]:
    rows = MoeRows(
        experts=int(table["num_experts"][0]),
        experts_per_token=int(table["topk"][0]),
        tokens=table["num_tokens"],
        ranks=table["moe_ep_size"],
        distribution=table["distribution"],
        time_s=table["latency_s"],
    )
    if not np.any(rows.distribution == "balanced"):
        return
    tested, errors = moe_layer_errors(rows)
    for place, (time_s, error) in enumerate(zip(tested.time_s, errors, strict=True)):
        where = f"num_tokens={tested.tokens[place]}, moe_ep_size={tested.ranks[place]}"
        yield Predicted(
            what="moe_layer",
            model=f"{rows.experts_per_token} of {rows.experts} experts",
            gpu=tables.gpu,
            engine=tables.engine,
            sparse=True,
            measured=float(time_s),
            predicted=float(time_s * (1 + error)),
            source=f"{layer}, {where}, {tested.distribution[place]}",
        )
