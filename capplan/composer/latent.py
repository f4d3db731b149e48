"""Latent attention (MLA): one key-value vector a token, which all heads of a GPU share.

Verification is the decode kernel with heads × query tokens rows: the cache is read once, and rows
cost nothing until arithmetic binds. Tables are published by rows, so both are read off them.

Engines' tables differ. Some time the whole module with its projections, some the kernel alone; then
the projections are read from the tables of matrices and of batched products.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from capplan.composer.asked import Asked
from capplan.composer.cached import CORNER
from capplan.composer.grouped import CACHES
from capplan.composer.kept import kept, kept_caveats
from capplan.composer.latent_kernel import latent_attention
from capplan.composer.matrices import DTYPES, matrix, product
from capplan.composer.refusals import Refused
from capplan.composer.small import small
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.surface import Array
from capplan.records.architecture import Mla

TIMED: Final = {"kv_rank": 512, "rope_head_size": 64, "nope_head_size": 128, "value_head_size": 128}
"""The shape that was timed, DeepSeek-V3's; heads are free."""
TIMED_MODULE: Final = (7168, 1536)
"""Hidden size and rank of the query of the module with its projections."""
OPERATORS: Final = 12
"""Operators of the module: kernel, five projections, two absorbed products, norms and the like."""


def latent_terms(asked: Asked, tables: Silicon, shape: Mla, count: int) -> Iterator[Term]:
    """All of an attention layer: kernel and projections.

    Raises:
        Refused: No table has such a shape.
    """
    for name, timed in TIMED.items():
        if (found := getattr(shape, name)) != timed:
            rule = f"latent attention was timed with a {name} of {timed} alone"
            raise Refused("model", rule, str(found))
    cache = ("kv_cache_dtype", CACHES.get(asked.cache))
    kernel = latent_attention(tables, ("generation_mla", "context_mla"), shape.heads, (cache,))
    if kernel is not None:
        yield Term(
            "attention",
            "attention",
            count,
            kernel.at,
            kernel.sources,
            caveats=(CORNER, *kept_caveats(asked.weights)),
            by_context=True,
        )
        yield from _projections(asked, tables, shape, count)
        return
    whole = None
    if (asked.model.hidden_size, shape.query_rank) == TIMED_MODULE and asked.weights != "nvfp4":
        operators = "mla_generation_module", "mla_context_module"
        wanted = cache, ("gemm_type", DTYPES.get(asked.weights))
        whole = latent_attention(tables, operators, shape.heads, wanted)
    if whole is None:
        rule = "latent attention has no table of this cache, or of these heads on a GPU"
        raise Refused("model", rule, f"{asked.cache}, {shape.heads} heads")
    what = "attention with projections"
    yield Term(
        "attention",
        what,
        count,
        whole.at,
        whole.sources,
        caveats=(CORNER,),
        by_context=True,
        operators=OPERATORS,
    )


def _projections(asked: Asked, tables: Silicon, shape: Mla, count: int) -> Iterator[Term]:
    hidden, heads, rank = asked.model.hidden_size, shape.heads, shape.query_rank
    key_size = shape.nope_head_size + shape.rope_head_size
    cached = shape.kv_rank + shape.rope_head_size
    query = heads * key_size
    wide = kept(asked.weights)

    def projection(what: str, n: int, k: int, precision: str = wide) -> Term:
        return matrix(tables, "attention", what, precision, (n, k), count)

    if rank is None:
        yield projection("query and latent projections", query + cached, hidden)
    else:
        yield projection("query and latent projections", rank + cached, hidden)
        yield projection("query projection", query, rank)
        yield small(tables, "norm of the query's latent", rank, count)
    yield small(tables, "norm of the latent", cached, count)
    yield small(tables, "positions and the cache's entry", query, count)
    for name in ("mla_gen_pre", "mla_gen_post"):
        yield _absorbed(tables, name, heads, count)
    yield _expanded(tables, shape, wide, count)
    yield projection("output projection", hidden, heads * shape.value_head_size, asked.weights)


def _absorbed(tables: Silicon, name: str, heads: int, count: int) -> Term:
    """A product with the latent's own projection, head by head, which decode absorbs."""
    what = "products with the latent's projection"
    found = tables.find("mla_bmm", op_name=name, num_heads=heads, bmm_dtype="bfloat16")
    if found is None:
        raise Refused("model", f"{what} have no table of these heads", str(heads))
    curve = found.curve("num_tokens", what, f"{name}, num_heads={heads}")

    def at(load: Load) -> Array:
        time_s = curve.within(np.maximum(load.decode_tokens, 1))
        return np.where(load.batch > 0, time_s, 0.0)

    return Term("attention", what, count, at, (curve.source,))


def _expanded(tables: Silicon, shape: Mla, precision: str, count: int) -> Term:
    """Prefill makes keys and values of its latents, and of those it finds in the cache."""
    what = "keys and values of latents in prefill"
    width = shape.heads * (shape.nope_head_size + shape.value_head_size)
    curve, error = product(tables, what, precision, (width, shape.kv_rank))

    def at(load: Load) -> Array:
        expanded = load.prefill_tokens + np.where(load.prefill_tokens > 0, load.cached_tokens, 0.0)
        last = curve.sizes[-1]
        pieces = np.maximum(expanded / last, 1)
        time_s = pieces * curve.at(np.clip(expanded, 1, last))
        return np.where(expanded > 0, time_s, 0.0)

    return Term("attention", what, count, at, (curve.source,), error)
