"""The terms of layers of one kind."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

import numpy as np

from capplan.composer.asked import Asked
from capplan.composer.cached import CORNER
from capplan.composer.chosen import chosen_terms
from capplan.composer.experts import routed_experts
from capplan.composer.grouped import grouped_attention
from capplan.composer.latent import latent_terms
from capplan.composer.matrices import matrix
from capplan.composer.recurrent import recurrent_terms
from capplan.composer.refusals import Refused
from capplan.composer.shared import shared_terms
from capplan.composer.small import small
from capplan.composer.sums import all_reduce, exchange
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.sharding import on_gpu
from capplan.physics.surface import Array
from capplan.records.architecture import DeltaNet, Dense, Gqa, LayerKind, Mla, Moe


def layer_terms(asked: Asked, tables: Silicon, kind: LayerKind) -> Iterator[Term]:
    """Terms of all layers of a kind.

    Raises:
        Refused: Something in the layers has no table.
    """
    split = asked.split
    for term in _own_terms(asked, tables, kind):
        yield term if split.copies == 1 else own(term, split.copies)
    if isinstance(kind.feed_forward, Moe):
        yield routed_experts(asked, tables, kind.feed_forward, kind.layers)
        if split.copies > 1:
            yield exchange(tables, split.gpus, asked.model.hidden_size, kind.layers)


def _own_terms(asked: Asked, tables: Silicon, kind: LayerKind) -> Iterator[Term]:
    """What works on the tokens of one copy of attention alone."""
    split, hidden = asked.split, asked.model.hidden_size
    yield from attention_terms(asked, tables, kind)
    yield from feed_forward_terms(asked, tables, kind)
    yield small(tables, "norms", hidden, kind.norms * kind.layers)
    if split.tensor > 1:
        exchanged = isinstance(kind.feed_forward, Moe) and split.copies > 1
        yield all_reduce(tables, split.tensor, hidden, (1 if exchanged else 2) * kind.layers)


def own(term: Term, copies: int) -> Term:
    """The term of the copy with most sequences, of several that share them out."""

    def at(load: Load) -> Array:
        return term.at(
            replace(
                load,
                batch=np.ceil(load.batch / copies),
                prefill_tokens=load.prefill_tokens / copies,
            )
        )

    return replace(term, at=at)


def attention_terms(asked: Asked, tables: Silicon, kind: LayerKind) -> Iterator[Term]:
    """Attention with its projections."""
    (share,) = on_gpu((kind,), asked.split)
    shape, count = share.attention, kind.layers
    if isinstance(shape, Gqa):
        yield from _grouped(asked, tables, shape, count)
    elif isinstance(shape, Mla) and shape.read_tokens is not None:
        yield from chosen_terms(asked, tables, shape, count)
    elif isinstance(shape, Mla):
        yield from latent_terms(asked, tables, shape, count)
    elif isinstance(shape, DeltaNet):
        yield from recurrent_terms(asked, tables, shape, count)
    else:
        raise Refused("model", "has attention that is not composed", shape.kind)


def _grouped(asked: Asked, tables: Silicon, shape: Gqa, count: int) -> Iterator[Term]:
    hidden = asked.model.hidden_size
    query = shape.heads * shape.head_size
    keys = 2 * shape.kv_heads * shape.head_size
    inputs = query * (1 + shape.output_gate) + keys
    yield matrix(
        tables, "attention", "q, k and v projections", asked.weights, (inputs, hidden), count
    )
    kernel = grouped_attention(tables, shape, asked.cache)
    yield Term(
        "attention",
        "attention",
        count,
        kernel.at,
        kernel.sources,
        caveats=(CORNER,),
        by_context=True,
    )
    yield matrix(tables, "attention", "output projection", asked.weights, (hidden, query), count)
    fused = 1 + (shape.head_norm or shape.whole_norm) + shape.output_gate
    yield small(tables, "positions and the cache's entry", query + keys, fused * count)


def feed_forward_terms(asked: Asked, tables: Silicon, kind: LayerKind) -> Iterator[Term]:
    """The feed-forward layer."""
    (share,) = on_gpu((kind,), asked.split)
    whole, shape, count = kind.feed_forward, share.feed_forward, kind.layers
    if isinstance(shape, Dense):
        yield from _dense(asked, tables, shape.width, shape.gated, count)
    elif isinstance(whole, Moe) and isinstance(shape, Moe):
        yield from _sparse(asked, tables, whole, shape, count)
    else:
        raise Refused("model", "has feed-forward layers that are not composed", shape.kind)


def _dense(asked: Asked, tables: Silicon, width: int, gated: bool, count: int) -> Iterator[Term]:
    hidden, into = asked.model.hidden_size, width * (1 + gated)
    yield matrix(tables, "dense", "gate and up matrices", asked.weights, (into, hidden), count)
    yield small(tables, "activation", into, count)
    yield matrix(tables, "dense", "down matrix", asked.weights, (hidden, width), count)


def _sparse(asked: Asked, tables: Silicon, whole: Moe, share: Moe, count: int) -> Iterator[Term]:
    hidden = asked.model.hidden_size
    # Routers are kept in 16 bits, and every GPU chooses among all experts.
    yield matrix(tables, "sparse", "router", "bf16", (whole.experts, hidden), count)
    if share.shared_width:
        yield from shared_terms(asked, tables, share, count)
    yield small(tables, "choice of experts", whole.experts, count)


def vocabulary_on_gpu(asked: Asked) -> int:
    """Rows of the output head on one GPU."""
    return ceil(asked.model.vocabulary / asked.split.tensor)
