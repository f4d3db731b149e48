"""Layers of experts, fitted to evenly routed rows and tested on the others."""

from collections.abc import Iterator
from itertools import chain, islice
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
    """Rows whose routing was not fitted, of each layer's newest table.

    Args:
        tables: Of one GPU and engine.
        every: Of so many rows one is kept, counted over all layers.
    """
    newest: dict[tuple[object, ...], Table] = {}
    for table in reversed(tables.read(tables.engine, "moe")):
        newest |= dict.fromkeys(_layers(table), table)
    yield from islice(
        chain.from_iterable(
            _tested(newest[values], dict(zip(SHAPE, values, strict=True)), tables)
            for values in sorted(newest, key=str)
        ),
        0,
        None,
        every,
    )


def _layers(table: Table) -> set[tuple[object, ...]]:
    return set(zip(*(table[name].tolist() for name in SHAPE), strict=True))


def _tested(newest: Table, layer: dict[str, object], tables: Silicon) -> Iterator[Predicted]:
    table = newest.where(**layer)
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
    name = ", ".join(f"{key}={value}" for key, value in layer.items())
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
            source=f"{name}, {where}, {tested.distribution[place]}",
        )
