"""Latent attention that reads a choice of its cache (DSA): an indexer picks, the rest follows.

Whole modules were timed. Every query token of a verification chooses for itself, so its reads are
those of a sequence of its own: a verification is read off the table at batch × query tokens.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from capplan.composer.asked import Asked
from capplan.composer.cached import cache_surface, chunk_surface
from capplan.composer.grouped import CACHES
from capplan.composer.kept import kept, kept_caveats
from capplan.composer.matrices import DTYPES
from capplan.composer.refusals import Refused
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon, Table
from capplan.physics.surface import Array
from capplan.records.architecture import Mla
from capplan.records.caveat import Caveat

FAMILIES: Final = {
    (7168, 1536, 128, 128): "DeepseekV32ForCausalLM",
    (6144, 2048, 192, 256): "GlmMoeDsaForCausalLM",
}
"""Families timed, by hidden size, rank of the query, sizes of a head's keys and values."""
EACH: Final = Caveat(
    about="attention",
    text=(
        "Verification with attention that chooses what it reads was not timed: every drafted token "
        "is taken to read as much as a sequence of its own, which is the most it can."
    ),
)
OPERATORS: Final = 20
"""Operators of the module: those of latent attention and of the indexer."""
BORROWED: Final = "skip_indexer"
"""In the names of kernels that run with the choice of an earlier layer."""


def chosen_terms(asked: Asked, tables: Silicon, shape: Mla, count: int) -> Iterator[Term]:
    """All of an attention layer.

    Raises:
        Refused: No table has such a shape.
    """
    size = asked.model.hidden_size, shape.query_rank, shape.nope_head_size, shape.value_head_size
    family = FAMILIES.get(size)  # type: ignore[arg-type]
    if family is None:
        rule = "attention that chooses what it reads was timed in DeepSeek-V3.2 and GLM-5 alone"
        raise Refused("model", rule, asked.model.name)
    wanted = {
        "architecture": family,
        "num_heads": shape.heads,
        "gemm_type": DTYPES.get(kept(asked.weights)),
        "kv_cache_dtype": CACHES.get(asked.cache),
    }
    term = _term(tables, tuple(wanted.items()), shape.indexer is None, count)
    yield replace(term, caveats=(*term.caveats, *kept_caveats(asked.weights)))


@lru_cache(maxsize=32)
def _term(tables: Silicon, wanted: tuple[tuple[str, Any], ...], borrowed: bool, count: int) -> Term:
    rows = ", ".join(f"{name}={value}" for name, value in wanted)
    decode = _module(tables, "dsa_generation_module", borrowed, wanted)
    prefill = _module(tables, "dsa_context_module", borrowed, (*wanted, ("batch_size", 1)))
    if decode is None or prefill is None:
        rule = "attention that chooses what it reads has no table of these heads and precisions"
        raise Refused("model", rule, rows)
    reading, chunks = cache_surface(decode), chunk_surface(prefill)

    def at(load: Load) -> Array:
        tokens = load.decode_tokens
        read_s = reading.at(reading.clamped(0, tokens), reading.clamped(1, load.context_tokens))
        chunk = chunks.clamped(0, load.prefill_tokens)
        new_s = chunks.at(chunk, chunks.clamped(1, load.cached_tokens, above=True))
        # What one token costs is paid once a step, by the batch where there is one.
        paid = np.where(tokens > 0, chunks.at(chunks.axes[0][0], chunks.axes[1][0]), 0.0)
        decode_s = np.where(tokens > 0, read_s, 0.0)
        return np.asarray(decode_s + np.where(load.prefill_tokens > 0, new_s - paid, 0.0))

    sources = decode.said("decode attention", rows), prefill.said("prefill attention", rows)
    return Term(
        "attention",
        "attention with projections and indexer",
        count,
        at,
        sources,
        caveats=(EACH,),
        by_context=True,
        operators=OPERATORS,
    )


def _module(
    tables: Silicon, operator: str, borrowed: bool, wanted: tuple[tuple[str, Any], ...]
) -> Table | None:
    found = tables.find(operator, **dict(wanted))
    if found is None:
        return None
    marked = np.array([BORROWED in str(name) for name in found["kernel_source"]])
    kept = found.rows(marked == borrowed)
    return kept if len(kept) else None
