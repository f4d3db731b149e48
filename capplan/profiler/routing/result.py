"""Choices become what a profile keeps of them: popularity, overlap, distinct experts."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, get_args

import numpy as np

from capplan.physics import overlap as measure
from capplan.physics.overlap import Choices
from capplan.physics.surface import Array
from capplan.records.caveat import Origin
from capplan.records.routing import (
    DistinctCell,
    DistinctTable,
    LayerGroup,
    LayerGroupName,
    Likeness,
    LikenessTable,
    Routing,
    WorkloadRouting,
)

LAGS: Final = 16
BATCHES: Final = (4, 16)
"""Batches beside one, where there are as many sequences."""
BATCH_QUERIES: Final = (1, 4)

Workloads = Mapping[str, Sequence[Choices]]


def routing(workloads: Workloads, experts: int, seed: int, origin: Origin) -> Routing:
    """Statistics of every workload, and how alike each two of them are.

    Args:
        workloads: Choices of each text, [tokens, layers, experts_per_token], by workload; at
            least two texts of more than LAGS tokens each.
        experts: Routed experts of a layer.
        seed: Of the steps that are drawn to see what a batch touches.
        origin: How the choices came about.
    """
    chosen = next(iter(workloads.values()))[0].shape[2]
    pairs = itertools.combinations(workloads, 2)
    likeness = tuple(_likeness(workloads, pair, experts) for pair in pairs)
    return Routing(
        experts=experts,
        experts_per_token=chosen,
        workloads={name: _workload(texts, experts, seed) for name, texts in workloads.items()},
        likeness=LikenessTable(rows=likeness) if likeness else None,
        origin=origin,
    )


def _workload(texts: Sequence[Choices], experts: int, seed: int) -> WorkloadRouting:
    across = measure.overlap_across(texts, experts)
    lags = measure.overlap_at_lags(texts, experts, LAGS)
    popularity = _deciles(measure.popularity(texts, experts))
    distinct = _distinct(texts, experts, seed)
    groups = {
        name: LayerGroup(
            layers=len(layers),
            across=_short(across[layers].mean()),
            overlap=tuple(map(_short, lags[:, layers].mean(axis=1))),
            popularity=tuple(map(_short, popularity[:, layers].mean(axis=1))),
            distinct=DistinctTable(
                rows=tuple(
                    DistinctCell(
                        batch=batch,
                        query_tokens=query,
                        distinct_experts=_short(by_layer[layers].mean()),
                    )
                    for (batch, query), by_layer in distinct.items()
                )
            ),
        )
        for name, layers in thirds(len(across)).items()
    }
    return WorkloadRouting(
        sequences=len(texts), positions=sum(map(len, texts)), layer_groups=groups
    )


def thirds(layers: int) -> dict[LayerGroupName, list[int]]:
    """Layers with experts by depth; with fewer than three some thirds are missing."""
    names: tuple[LayerGroupName, ...] = get_args(LayerGroupName)
    parts = np.array_split(np.arange(layers), len(names))
    return {name: part.tolist() for name, part in zip(names, parts, strict=True) if part.size}


def _distinct(texts: Sequence[Choices], experts: int, seed: int) -> dict[tuple[int, int], Array]:
    """Distinct experts by batch and query tokens. [layers] each."""
    alone = measure.distinct_of_neighbours(texts, experts, LAGS)
    found = {(1, query): by_layer for query, by_layer in enumerate(alone, start=1)}
    for batch, query in itertools.product(BATCHES, BATCH_QUERIES):
        if sum(len(text) >= query for text in texts) >= batch:
            found[batch, query] = measure.distinct_of_batch(texts, experts, batch, query, seed)
    return found


def _deciles(popularity: Array) -> Array:
    """Experts by popularity over the mean: least, nine deciles, most. [11, layers]."""
    relative = popularity / popularity.mean(axis=1, keepdims=True)
    return np.asarray(np.quantile(relative, np.linspace(0, 1, 11), axis=1))


def _likeness(workloads: Workloads, pair: tuple[str, str], experts: int) -> Likeness:
    one, other = (workloads[name] for name in pair)
    chosen = one[0].shape[2]
    popular = [measure.popularity(texts, experts) for texts in (one, other)]
    shared = measure.overlap_between(popular[0], popular[1], chosen)
    own = [measure.overlap_across(texts, experts) for texts in (one, other)]
    cosine = shared.mean() / np.sqrt(own[0].mean() * own[1].mean())
    return Likeness(
        workload=pair[0], other=pair[1], overlap=_short(shared.mean()), cosine=_short(cosine)
    )


def _short(value: float) -> float:
    return round(float(value), 4)
