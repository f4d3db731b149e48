"""Attention with grouped queries, layer by layer: windows, sinks, gates, an indexer of blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capplan.importers.hugging_face.keys import Keys
from capplan.records.attention import Attention, Cross, Gqa, Indexer

FULL: Final = "full_attention"
SLIDING: Final = "sliding_attention"


@dataclass(frozen=True)
class Form:
    """What a family's attention is without its files saying so."""

    head_size: int | None = None
    """Size of a head where the file gives none; None for hidden_size over heads."""
    head_norm: bool = False
    whole_norm: bool = False
    norm_key: str | None = None
    """Key that switches the norm; None where the family has no choice."""
    bias_key: str | None = None
    """Key that switches biases of query, key and value; None where the family has no choice."""
    bias_default: bool = False
    output_bias: bool = False
    """Where queries have a bias, the output has one too."""
    gate_key: str | None = None
    """Key of the output gate."""
    gate_default: bool = False
    sinks: bool = False


PLAIN: Final = Form()


def grouped(keys: Keys, form: Form = PLAIN) -> Gqa:
    """One layer's attention, as all layers of most families have it."""
    heads, kv_heads, head_size = _heads(keys, form)
    bias = form.bias_default
    if form.bias_key is not None:
        bias = keys.flag(form.bias_key, default=bias)
    normed = form.norm_key is None or keys.flag(form.norm_key)
    gate = form.gate_default
    if form.gate_key is not None:
        gate = keys.flag(form.gate_key, default=gate)
    return Gqa(
        kind="gqa",
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        projection_bias=bias,
        output_bias=bias and form.output_bias,
        head_norm=form.head_norm and normed,
        whole_norm=form.whole_norm and normed,
        output_gate=gate,
        sinks=form.sinks,
    )


def alike(keys: Keys, layers: int, form: Form) -> list[Attention]:
    """All layers attend to everything."""
    if keys.given("layer_types"):
        keys.by_layer("layer_types", layers, (FULL,))
    if keys.given("attn_type_list"):
        keys.by_layer("attn_type_list", layers, (1,))  # MiniMax; 0 was linear attention
    return [grouped(keys, form)] * layers


def windowed(keys: Keys, layers: int, form: Form, default: int | None = None) -> list[Attention]:
    """All layers attend to sliding_window where it is given (Mistral, Mixtral).

    `default` is what a missing key means; null means none.
    """
    window = keys.raw("sliding_window") if "sliding_window" in keys else default
    if window is None:
        return [grouped(keys, form)] * layers
    size = default if "sliding_window" not in keys and default else keys.size("sliding_window")
    return [_narrow(grouped(keys, form), _bounding(keys, size))] * layers


def switched(keys: Keys, layers: int, form: Form) -> list[Attention]:
    """A window holds in the upper layers, and only where use_sliding_window is true (Qwen2)."""
    whole = grouped(keys, form)
    on = keys.flag("use_sliding_window", default=False)
    first = keys.raw("max_window_layers")
    window = _bounding(keys, keys.size("sliding_window")) if on else keys.raw("sliding_window")
    if keys.given("layer_types"):
        kinds = keys.by_layer("layer_types", layers, (FULL, SLIDING) if on else (FULL,))
    elif on:
        first = keys.size("max_window_layers", least=0)
        kinds = [SLIDING if layer >= first else FULL for layer in range(layers)]
    else:
        kinds = [FULL] * layers
    return [_narrow(whole, window) if kind == SLIDING else whole for kind in kinds]


def alternating(
    keys: Keys, layers: int, form: Form, every: int | None = None, pattern_key: str | None = None
) -> list[Attention]:
    """Windows in some layers: layer_types says which, else every n-th layer sees everything."""
    whole = grouped(keys, form)
    kinds = window_kinds(keys, layers, every, pattern_key)
    narrow = _narrow(whole, keys.size("sliding_window"))
    return [narrow if kind == SLIDING else whole for kind in kinds]


def window_kinds(
    keys: Keys, layers: int, every: int | None = None, pattern_key: str | None = None
) -> Sequence[str]:
    """Which layers have a window."""
    if keys.given("layer_types") or every is None:
        return keys.by_layer("layer_types", layers, (FULL, SLIDING))
    if pattern_key is not None:
        every = keys.size(pattern_key, default=every)
    return [FULL if (layer + 1) % every == 0 else SLIDING for layer in range(layers)]


def chunked(keys: Keys, layers: int, form: Form) -> list[Attention]:
    """Llama 4: chunks of attention_chunk_size bound all but every n-th layer.

    A chunk is counted as the window it becomes at its end.
    """
    whole = grouped(keys, form)
    narrow = _narrow(whole, keys.size("attention_chunk_size"))
    every = keys.size("nope_layer_interval", default=4)
    if keys.given("no_rope_layers"):
        rotary = keys.by_layer("no_rope_layers", layers, (0, 1))
    else:
        rotary = [int((layer + 1) % every != 0) for layer in range(layers)]
    return [narrow if bounded else whole for bounded in rotary]


def two_shapes(keys: Keys, layers: int) -> list[Attention]:
    """MiMo-V2-Flash: windowed layers have heads of their own."""
    pattern = keys.by_layer("hybrid_layer_pattern", layers, (0, 1))
    if keys.flag("attention_bias", default=False):
        keys.complain("attention_bias", "biases of this family's attention are not known")
    whole = _own_heads(keys, "").model_copy(
        update={"sinks": keys.flag("add_full_attention_sink_bias")}
    )
    narrow = _own_heads(keys, "swa_").model_copy(
        update={
            "sinks": keys.flag("add_swa_attention_sink_bias"),
            "window_tokens": keys.size(keys.first("sliding_window", "sliding_window_size")),
        }
    )
    keys.raw("attention_chunk_size")  # the window once more, as the prefill kernel cuts it
    return [narrow if windowed_here else whole for windowed_here in pattern]


def gemma4(keys: Keys, layers: int) -> list[Attention]:
    """Gemma 4: layers that see everything have larger heads, and keys that are values too."""
    for key in ("num_kv_shared_layers", "hidden_size_per_layer_input"):
        if keys.size(key, default=0, least=0):
            keys.complain(key, "layers that share caches or embeddings cannot be described yet")
    kinds = window_kinds(keys, layers)
    bias = keys.flag("attention_bias", default=False)
    narrow = _narrow(
        grouped(keys, Form(head_size=256, head_norm=True, bias_default=bias, output_bias=True)),
        keys.size("sliding_window"),
    )
    one = keys.flag("attention_k_eq_v")
    whole = narrow.model_copy(
        update={
            "window_tokens": None,
            "head_size": keys.size("global_head_dim"),
            "kv_heads": keys.size("num_global_key_value_heads", default=narrow.kv_heads),
            "keys_as_values": one,
        }
    )
    if narrow.heads % whole.kv_heads:
        keys.complain("num_global_key_value_heads", f"must divide num_attention_heads ({whole})")
    return [narrow if kind == SLIDING else whole for kind in kinds]


def block_sparse(keys: Keys, layers: int) -> list[Attention]:
    """MiniMax-M3: an indexer chooses blocks of the cache in most layers."""
    form = Form(head_norm=True, norm_key="use_qk_norm", gate_key="attention_output_gate")
    whole = grouped(keys, form)
    keys.word("qk_norm_type", ("per_head",))
    sparse = keys.inside("sparse_attention_config")
    if not sparse.flag("use_sparse_attention", default=True):
        return [whole] * layers
    for detail in ("sparse_init_block", "sparse_local_block", "sparse_score_type"):
        sparse.raw(detail)  # which of the chosen blocks are fixed: their number stays
    where = sparse.by_layer("sparse_attention_freq", layers, (0, 1))
    if sparse.given("sparse_disable_index_value"):
        # An index value where attention is sparse would be another projection and cache.
        silent = sparse.by_layer("sparse_disable_index_value", layers, (0, 1))
        if any(on and not off for on, off in zip(where, silent, strict=True)):
            sparse.complain("sparse_disable_index_value", "index values cannot be described yet")
    block = sparse.size("sparse_block_size")
    chosen = whole.model_copy(
        update={
            "indexer": Indexer(
                heads=sparse.size("sparse_num_index_heads"),
                head_size=sparse.size("sparse_index_dim"),
                head_weights=False,
            ),
            "read_tokens": block * sparse.size("sparse_topk_blocks", most=10_000_000 // block),
        }
    )
    return [chosen if on else whole for on in where]


def with_images(keys: Keys, layers: int) -> list[Attention]:
    """Llama 3.2 Vision: some layers attend to an image's tokens only."""
    whole = grouped(keys)
    across = Cross(
        kind="cross", heads=whole.heads, kv_heads=whole.kv_heads, head_size=whole.head_size
    )
    places = set(keys.whole_numbers("cross_attention_layers"))
    if not places or not places <= set(range(layers)):
        keys.complain("cross_attention_layers", f"needs numbers of layers, from 0 to {layers - 1}")
    return [across if layer in places else whole for layer in range(layers)]


def _heads(keys: Keys, form: Form) -> tuple[int, int, int]:
    heads = keys.size("num_attention_heads")
    kv_heads = keys.size("num_key_value_heads", default=heads)
    if heads % kv_heads:
        keys.complain("num_key_value_heads", f"must divide num_attention_heads ({heads})")
    hidden = keys.size("hidden_size")
    name = keys.first("head_dim", "attention_head_dim")
    if not keys.given(name) and form.head_size is None and hidden % heads:
        keys.complain("hidden_size", f"must be a multiple of num_attention_heads ({heads})")
    return heads, kv_heads, keys.size(name, default=form.head_size or max(hidden // heads, 1))


def _own_heads(keys: Keys, prefix: str) -> Gqa:
    heads = keys.size(f"{prefix}num_attention_heads")
    kv_heads = keys.size(f"{prefix}num_key_value_heads")
    if heads % kv_heads:
        keys.complain(f"{prefix}num_key_value_heads", f"must divide {prefix}heads ({heads})")
    return Gqa(
        kind="gqa",
        heads=heads,
        kv_heads=kv_heads,
        head_size=keys.size(f"{prefix}head_dim"),
        value_head_size=keys.size(f"{prefix}v_head_dim"),
    )


def _bounding(keys: Keys, window: int) -> int | None:
    """The window; None where no context is longer, so that it bounds nothing (Phi-3.5-MoE)."""
    longest = keys.raw("max_position_embeddings")
    return None if type(longest) is int and longest <= window else window


def _narrow(whole: Gqa, window: int | None) -> Gqa:
    return whole.model_copy(update={"window_tokens": window})
