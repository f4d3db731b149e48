"""The matrices of an attention layer, by the names that checkpoints give them.

Names matter where a checkpoint stores some matrices narrower than others: it lists them by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from capplan.records.attention import (
    Attention,
    Compressed,
    Cross,
    DeltaNet,
    Gqa,
    Indexer,
    Kda,
    Mamba,
    Mla,
    NoAttention,
)


@dataclass(frozen=True)
class Parts:
    """Parameters of one layer's attention."""

    matrices: dict[str, int]
    """By name, with `indexer.` before those of an indexer."""
    vectors: int = 0
    """Biases, convolutions, decays, sinks."""
    norms: int = 0

    @property
    def attention(self) -> int:
        """All but norms."""
        return sum(self.matrices.values()) + self.vectors


def attention_parts(attention: Attention, hidden: int, inputs: int = 1) -> Parts:
    """Parameters of one layer's attention.

    Args:
        attention: Its kind and shape.
        hidden: Size of a hidden vector.
        inputs: Hidden vectors side by side that queries, keys and values are made of: 2 in the
            first layer of EAGLE-3, else 1.

    Returns:
        Matrices by name, and the rest.

    Source:
        Modelling code of the families in Hugging Face transformers and of DeepSeek-V4's release.
    """
    return _COUNTERS[attention.kind](attention, hidden, inputs)


def _gqa(shape: Gqa, hidden: int, inputs: int) -> Parts:
    size = shape.head_size
    value_size = shape.value_head_size or size
    query, key = shape.heads * size, shape.kv_heads * size
    value, out = shape.kv_heads * value_size, shape.heads * value_size
    matrices = {
        "q_proj": inputs * hidden * query,
        "k_proj": inputs * hidden * key,
        "v_proj": 0 if shape.keys_as_values else inputs * hidden * value,
        "o_proj": out * hidden,
        "g_proj": hidden * out * shape.output_gate,
    }
    indexer = _indexer(shape.indexer, hidden)
    bias = (query + key + value * (not shape.keys_as_values)) * shape.projection_bias
    norms = 2 * size * shape.head_norm + (query + key) * shape.whole_norm
    return Parts(
        _kept(matrices | indexer.matrices),
        bias + hidden * shape.output_bias + shape.heads * shape.sinks + indexer.vectors,
        norms + indexer.norms,
    )


def _mla(shape: Mla, hidden: int, inputs: int) -> Parts:
    rank = shape.query_rank
    query = shape.heads * (shape.nope_head_size + shape.rope_head_size)
    value = shape.heads * shape.value_head_size
    direct = {"q_proj": inputs * hidden * query}
    ranked = {"q_a_proj": inputs * hidden * (rank or 0), "q_b_proj": (rank or 0) * query}
    matrices = (direct if rank is None else ranked) | {
        "kv_a_proj_with_mqa": inputs * hidden * (shape.kv_rank + shape.rope_head_size),
        "kv_b_proj": shape.kv_rank * (shape.heads * shape.nope_head_size + value),
        "o_proj": value * hidden,
        "g_proj": hidden * value * shape.output_gate,
    }
    indexer = _indexer(shape.indexer, hidden)
    return Parts(
        _kept(matrices | indexer.matrices),
        indexer.vectors,
        shape.kv_rank + (rank or 0) + indexer.norms,
    )


def _indexer(shape: Indexer | None, hidden: int) -> Parts:
    if shape is None:
        return Parts({})
    size = shape.head_size
    matrices = {"indexer.wq_b": (shape.query_rank or hidden) * shape.heads * size}
    if shape.head_weights:
        matrices["indexer.weights_proj"] = hidden * shape.heads
    if shape.pooling == "overlapping":
        compressor = _compressor(hidden, size, 2, shape.tokens_per_key)
        return Parts(matrices | {"indexer.compressor": compressor - size}, 0, size)
    if not shape.own_keys:
        return Parts(matrices)
    matrices["indexer.wk"] = (shape.key_input or hidden) * size
    if shape.pooling == "learned":
        matrices["indexer.index_kpool_compress_gate"] = hidden * size
    places = shape.tokens_per_key * size if shape.pooling == "learned" else 0
    # DeepSeek's keys pass a layer norm with a bias, V4.1's one without, MiniMax's two norms.
    norms = size if shape.key_input else 2 * size
    return Parts(matrices, places, norms)


def _compressor(hidden: int, size: int, width: int, tokens: int) -> int:
    """Two projections, a vector a place, a norm."""
    return 2 * hidden * width * size + tokens * width * size + size


def _compressed(shape: Compressed, hidden: int, _inputs: int) -> Parts:
    size = shape.head_size
    query, low = shape.heads * size, shape.output_groups * shape.output_rank
    matrices = {
        "wq_a": hidden * shape.query_rank,
        "wq_b": shape.query_rank * query,
        "wkv": hidden * size,
        "wo_a": query // shape.output_groups * low,
        "wo_b": low * hidden,
    }
    vectors, norms = shape.heads, shape.query_rank + size
    if (compressor := shape.compressor) is not None:
        width = size * (1 + compressor.overlapping)
        matrices["compressor"] = hidden * width * (1 + compressor.gated)
        vectors += compressor.tokens_per_entry * width * compressor.positions
        norms += size
    indexer = _indexer(shape.indexer, hidden)
    return Parts(matrices | indexer.matrices, vectors + indexer.vectors, norms + indexer.norms)


def _delta_net(shape: DeltaNet, hidden: int, _inputs: int) -> Parts:
    key = shape.key_heads * shape.key_head_size
    value = shape.value_heads * shape.value_head_size
    matrices = {
        "in_proj_qkv": hidden * (2 * key + value),
        "in_proj_z": hidden * value,
        "in_proj_b": hidden * shape.value_heads,
        "in_proj_a": hidden * shape.value_heads,
        "out_proj": value * hidden,
    }
    vectors = (2 * key + value) * shape.kernel + 2 * shape.value_heads
    return Parts(matrices, vectors, shape.value_head_size)


def _kda(shape: Kda, hidden: int, _inputs: int) -> Parts:
    size = shape.head_size
    inner = shape.heads * size
    low_rank = {"g_a_proj": hidden * size, "g_b_proj": size * inner}
    matrices = {
        **{f"{name}_proj": hidden * inner for name in "qkv"},
        "f_a_proj": hidden * size,
        "f_b_proj": size * inner,
        "b_proj": hidden * shape.heads,
        **({"g_proj": hidden * inner} if shape.full_rank_gate else low_rank),
        "o_proj": inner * hidden,
    }
    return Parts(matrices, 3 * inner * shape.kernel + inner + shape.heads, size)


def _mamba(shape: Mamba, hidden: int, _inputs: int) -> Parts:
    inner = shape.heads * shape.head_size
    convolved = inner + 2 * shape.groups * shape.state_size
    into = inner + convolved + shape.heads
    bias = (into + hidden) * shape.projection_bias
    vectors = convolved * (shape.kernel + shape.convolution_bias) + 3 * shape.heads + bias
    return Parts({"in_proj": hidden * into, "out_proj": inner * hidden}, vectors, inner)


def _cross(shape: Cross, hidden: int, _inputs: int) -> Parts:
    query, key = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    matrices = {
        "q_proj": hidden * query,
        "k_proj": hidden * key,
        "v_proj": hidden * key,
        "o_proj": query * hidden,
    }
    return Parts(matrices, 2, 2 * shape.head_size)  # two scalars gate attention and feed-forward


def _none(_shape: NoAttention, _hidden: int, _inputs: int) -> Parts:
    return Parts({})


def _kept(matrices: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in matrices.items() if count}


_COUNTERS: Final[dict[str, Callable[[Any, int, int], Parts]]] = {
    "gqa": _gqa,
    "mla": _mla,
    "compressed": _compressed,
    "delta_net": _delta_net,
    "kda": _kda,
    "mamba": _mamba,
    "cross": _cross,
    "none": _none,
}
