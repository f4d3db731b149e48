"""What a sequence keeps in memory: entries that grow with its context, windows, states.

Three things that differ in kind. Attention to everything keeps an entry a token, for good.
Attention to a window keeps the latest tokens only, so it stops growing. Recurrent layers keep a
state of fixed size from the first token on; each token that is verified beside the first keeps one
more of it until it is accepted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from capplan.records.architecture import Architecture, DraftHead, LayerKind
from capplan.records.attention import (
    Attention,
    Compressed,
    DeltaNet,
    Gqa,
    Indexer,
    Kda,
    Mamba,
    Mla,
)


@dataclass(frozen=True)
class Kept:
    """What one layer keeps of one sequence."""

    values_per_token: float = 0.0
    """Numbers that every further token of context adds."""
    index_values_per_token: float = 0.0
    """The same for an indexer's keys, which engines store at a width of their own."""
    window_tokens: int = 0
    values_per_window_token: int = 0
    state_values: int = 0
    """Numbers of a recurrent state."""
    state_bits: int = 0
    convolution_values: int = 0
    """Latest inputs of short convolutions, as wide as a cache's numbers."""


@dataclass(frozen=True)
class KindCache:
    """Cache of all layers of one kind."""

    kind: LayerKind
    bytes_per_token: float
    """Growth with the context. [bytes/token]"""
    window_tokens: int
    window_bytes: float
    """Of a full window. [bytes/sequence]"""
    state_bytes: float
    """[bytes/sequence]."""


def kept(attention: Attention) -> Kept:
    """What one layer of a kind keeps of a sequence."""
    reader = _READERS.get(attention.kind)
    return Kept() if reader is None else reader(attention)


def cache_by_kind(
    kinds: tuple[LayerKind, ...],
    bytes_per_value: float,
    index_bytes_per_value: float | None = None,
) -> tuple[KindCache, ...]:
    """The cache of one sequence, layer kind by layer kind.

    Args:
        kinds: Layers of a model or of a drafting head.
        bytes_per_value: Size of one cached number. [bytes]
        index_bytes_per_value: The same for keys of an indexer; None for no other. [bytes]
    """
    return tuple(
        _kind_cache(kind, bytes_per_value, index_bytes_per_value or bytes_per_value)
        for kind in kinds
    )


def kv_bytes_per_token(
    architecture: Architecture, bytes_per_value: float, index_bytes_per_value: float | None = None
) -> float:
    """What one more token of context adds to the cache, over all layers.

    Windows and states do not grow: `state_bytes_per_sequence` holds them.

    Args:
        architecture: The model's anatomy.
        bytes_per_value: Size of one cached number. [bytes]
        index_bytes_per_value: The same for keys of an indexer; None for no other. [bytes]

    Returns:
        Keys and values of one token, held once: latent attention keeps one compressed vector and
        one rotary key for all heads. [bytes/token]

    Source:
        DeepSeek-V2 (arXiv 2405.04434), Table 1: 2·n_g·d_h a layer with grouped queries,
        d_c + d_h^R a layer with latent attention.
    """
    kinds = cache_by_kind(architecture.layer_kinds, bytes_per_value, index_bytes_per_value)
    return sum(kind.bytes_per_token for kind in kinds)


def draft_kv_bytes_per_token(head: DraftHead, bytes_per_value: float) -> float:
    """What one more token of context adds to the cache of a drafting head, all copies together.

    Args:
        head: Its anatomy.
        bytes_per_value: Size of one cached number. [bytes]

    Returns:
        Growth with the context. [bytes/token]
    """
    kinds = cache_by_kind(head.layer_kinds, bytes_per_value)
    return head.copies * sum(kind.bytes_per_token for kind in kinds)


def state_bytes_per_sequence(architecture: Architecture, bytes_per_value: float) -> float:
    """What a sequence keeps however long it is: recurrent states and full windows.

    Args:
        architecture: The model's anatomy.
        bytes_per_value: Size of one cached number; recurrent states have their own. [bytes]

    Returns:
        Size, an upper bound for sequences shorter than a window. [bytes/sequence]
    """
    kinds = cache_by_kind(architecture.layer_kinds, bytes_per_value)
    return sum(kind.state_bytes + kind.window_bytes for kind in kinds)


def held_bytes(
    kinds: tuple[LayerKind, ...],
    context_tokens: float,
    bytes_per_value: float,
    draft_tokens: int = 0,
) -> float:
    """All that layers keep of one sequence, slots for the tokens being verified among it.

    Args:
        kinds: The layers.
        context_tokens: Length of the context. [tokens]
        bytes_per_value: Size of one cached number. [bytes]
        draft_tokens: Tokens verified beside the next one: each needs a slot in a cache, and a
            recurrent state of its own until it is accepted. [tokens]

    Returns:
        Size. [bytes/sequence]
    """
    total, tokens = 0.0, context_tokens + draft_tokens
    for cache in cache_by_kind(kinds, bytes_per_value):
        total += cache.bytes_per_token * tokens + cache.state_bytes * (draft_tokens + 1)
        if cache.window_tokens:
            slots = min(tokens, cache.window_tokens + draft_tokens)
            total += cache.window_bytes / cache.window_tokens * slots
    return total


def _kind_cache(kind: LayerKind, bytes_per_value: float, index_bytes: float) -> KindCache:
    one = kept(kind.attention)
    growing = one.values_per_token * bytes_per_value + one.index_values_per_token * index_bytes
    window = one.window_tokens * one.values_per_window_token * bytes_per_value
    state = one.state_values * one.state_bits / 8 + one.convolution_values * bytes_per_value
    return KindCache(
        kind=kind,
        bytes_per_token=kind.layers * growing,
        window_tokens=one.window_tokens,
        window_bytes=kind.layers * window,
        state_bytes=kind.layers * state,
    )


def _gqa(shape: Gqa) -> Kept:
    values = shape.kv_heads * (shape.head_size + (shape.value_head_size or shape.head_size))
    if shape.window_tokens is not None:
        return Kept(window_tokens=shape.window_tokens, values_per_window_token=values)
    return Kept(values, _index_values(shape.indexer))


def _mla(shape: Mla) -> Kept:
    return Kept(shape.kv_rank + shape.rope_head_size, _index_values(shape.indexer))


def _compressed(shape: Compressed) -> Kept:
    """One vector is key and value, in the window and beyond it."""
    compressor = shape.compressor
    return Kept(
        values_per_token=shape.head_size / compressor.tokens_per_entry if compressor else 0.0,
        index_values_per_token=_index_values(shape.indexer),
        window_tokens=shape.window_tokens,
        values_per_window_token=shape.head_size,
    )


def _delta_net(shape: DeltaNet) -> Kept:
    keys = shape.key_heads * shape.key_head_size
    values = shape.value_heads * shape.value_head_size
    return Kept(
        state_values=values * shape.key_head_size,
        state_bits=shape.state_bits,
        convolution_values=(2 * keys + values) * (shape.kernel - 1),
    )


def _kda(shape: Kda) -> Kept:
    inner = shape.heads * shape.head_size
    return Kept(
        state_values=inner * shape.head_size,
        state_bits=shape.state_bits,
        convolution_values=3 * inner * (shape.kernel - 1),
    )


def _mamba(shape: Mamba) -> Kept:
    inner = shape.heads * shape.head_size
    convolved = inner + 2 * shape.groups * shape.state_size
    return Kept(
        state_values=inner * shape.state_size,
        state_bits=shape.state_bits,
        convolution_values=convolved * (shape.kernel - 1),
    )


def _index_values(indexer: Indexer | None) -> float:
    if indexer is None or not indexer.own_keys:
        return 0.0
    return indexer.head_size / indexer.tokens_per_key


_READERS: Final[dict[str, Callable[[Any], Kept]]] = {
    "gqa": _gqa,
    "mla": _mla,
    "compressed": _compressed,
    "delta_net": _delta_net,
    "kda": _kda,
    "mamba": _mamba,
}
"""Cross attention keeps an image's tokens, which text requests do not have."""
