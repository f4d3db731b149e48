"""The terms of layers of one kind."""

from collections.abc import Iterator
from math import ceil

from capplan.composer.asked import Asked
from capplan.composer.attention import grouped_attention
from capplan.composer.matrices import matrix
from capplan.composer.refusals import Refused
from capplan.composer.small import small
from capplan.composer.sums import all_reduce
from capplan.composer.term import Term
from capplan.physics.operators import Silicon
from capplan.records.architecture import Dense, Gqa, LayerKind


def layer_terms(asked: Asked, tables: Silicon, kind: LayerKind) -> Iterator[Term]:
    """Terms of all layers of a kind, which holds one GPU's share.

    Raises:
        Refused: Something in the layers has no table.
    """
    hidden, count = asked.model.hidden_size, kind.layers
    yield from _attention(asked, tables, kind)
    yield from _feed_forward(asked, tables, kind)
    yield small(tables, "norms", hidden, kind.norms * count)
    if asked.split.tensor > 1:
        yield all_reduce(tables, asked.split.tensor, hidden, 2 * count)


def _attention(asked: Asked, tables: Silicon, kind: LayerKind) -> Iterator[Term]:
    shape, hidden, count = kind.attention, asked.model.hidden_size, kind.layers
    if not isinstance(shape, Gqa):
        raise Refused("model", "attention of this kind is not composed", shape.kind)
    query = shape.heads * shape.head_size * (1 + shape.output_gate)
    keys = 2 * shape.kv_heads * shape.head_size
    inputs, output = (query + keys, hidden), (hidden, shape.heads * shape.head_size)
    yield matrix(tables, "attention", "q, k and v projections", asked.weights, inputs, count)
    kernel = grouped_attention(tables, shape, asked.cache)
    yield Term("attention", "attention", count, kernel.at, kernel.sources)
    yield matrix(tables, "attention", "output projection", asked.weights, output, count)
    yield small(tables, "positions and the cache's entry", query + keys, count)


def _feed_forward(asked: Asked, tables: Silicon, kind: LayerKind) -> Iterator[Term]:
    shape, hidden, count = kind.feed_forward, asked.model.hidden_size, kind.layers
    if not isinstance(shape, Dense):
        raise Refused("model", "feed-forward layers of this kind are not composed", shape.kind)
    into = (shape.width * (1 + shape.gated), hidden)
    yield matrix(tables, "dense", "gate and up matrices", asked.weights, into, count)
    yield small(tables, "activation", into[0], count)
    yield matrix(tables, "dense", "down matrix", asked.weights, (hidden, shape.width), count)


def vocabulary_on_gpu(asked: Asked) -> int:
    """Rows of the output head on one GPU."""
    return ceil(asked.model.vocabulary / asked.split.tensor)
