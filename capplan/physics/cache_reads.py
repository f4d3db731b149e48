"""What attention reads of a sequence's cache in one step, and what it computes with it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from capplan.physics.cache import cache_by_kind, kept
from capplan.records.architecture import LayerKind
from capplan.records.attention import Compressed, Gqa, Indexer, Mla


@dataclass(frozen=True)
class CacheRead:
    """Of one sequence in one step, over some layers."""

    read_bytes: float
    """Read once, however many tokens are verified. [bytes]"""
    flop: float
    """Products with keys and values, a query token. [FLOP/token]"""


@dataclass(frozen=True)
class _Reads:
    """Of one layer."""

    values: float
    """Cached numbers."""
    products: float
    """Multiplications with them, a query token."""


def cache_read(
    kinds: tuple[LayerKind, ...], context_tokens: float, bytes_per_value: float
) -> CacheRead:
    """What one sequence's attention reads and computes.

    Args:
        kinds: The layers, whole or one GPU's share of them.
        context_tokens: Length of the context. [tokens]
        bytes_per_value: Size of one cached number. [bytes]

    Returns:
        Reading and arithmetic; states are read and written, two products a number.
    """
    moved, flop = 0.0, 0.0
    for kind in kinds:
        reader = _READERS.get(kind.attention.kind)
        if reader is not None:
            reads = reader(kind.attention, context_tokens)
            moved += kind.layers * reads.values * bytes_per_value
            flop += kind.layers * 2 * reads.products
        moved += 2 * cache_by_kind((kind,), bytes_per_value)[0].state_bytes
        flop += kind.layers * 4 * kept(kind.attention).state_values
    return CacheRead(moved, flop)


def _gqa(shape: Gqa, context: float) -> _Reads:
    tokens = min(context, shape.window_tokens or context, shape.read_tokens or context)
    sizes = shape.head_size + (shape.value_head_size or shape.head_size)
    index = _index(shape.indexer, context)
    values, products = tokens * shape.kv_heads * sizes, tokens * shape.heads * sizes
    return _Reads(values + index.values, products + index.products)


def _mla(shape: Mla, context: float) -> _Reads:
    """As decoding runs it: queries meet the latent vector, which is key and value."""
    tokens = min(context, shape.read_tokens or context)
    index = _index(shape.indexer, context)
    key = shape.kv_rank + shape.rope_head_size
    return _Reads(
        tokens * key + index.values, tokens * shape.heads * (key + shape.kv_rank) + index.products
    )


def _compressed(shape: Compressed, context: float) -> _Reads:
    tokens = min(context, float(shape.window_tokens))
    if shape.compressor is not None:
        entries = context / shape.compressor.tokens_per_entry
        tokens += min(entries, shape.read_tokens or entries)
    index = _index(shape.indexer, context)
    return _Reads(
        tokens * shape.head_size + index.values,
        2 * tokens * shape.heads * shape.head_size + index.products,
    )


def _index(indexer: Indexer | None, context: float) -> _Reads:
    """An indexer looks at every key, its own or another layer's."""
    if indexer is None:
        return _Reads(0, 0)
    values = context / indexer.tokens_per_key * indexer.head_size
    return _Reads(values, values * indexer.heads)


_READERS: Final[dict[str, Callable[[Any, float], _Reads]]] = {
    "gqa": _gqa,
    "mla": _mla,
    "compressed": _compressed,
}
