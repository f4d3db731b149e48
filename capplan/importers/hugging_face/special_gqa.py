"""Grouped queries as single families have them: chunks, two shapes, blocks, images."""

from capplan.importers.hugging_face.gqa import SLIDING, Form, grouped, narrow, window_kinds
from capplan.importers.hugging_face.keys import Keys
from capplan.records.attention import Attention, Cross, Gqa, Indexer


def chunked(keys: Keys, layers: int, form: Form) -> list[Attention]:
    """Llama 4: chunks of attention_chunk_size bound all but every n-th layer.

    A chunk is counted as the window it becomes at its end.
    """
    whole = grouped(keys, form)
    bounded = narrow(whole, keys.size("attention_chunk_size"))
    every = keys.size("nope_layer_interval", default=4)
    if keys.given("no_rope_layers"):
        rotary = keys.by_layer("no_rope_layers", layers, (0, 1))
    else:
        rotary = [int((layer + 1) % every != 0) for layer in range(layers)]
    return [bounded if here else whole for here in rotary]


def two_shapes(keys: Keys, layers: int) -> list[Attention]:
    """MiMo-V2-Flash: windowed layers have heads of their own."""
    pattern = keys.by_layer("hybrid_layer_pattern", layers, (0, 1))
    if keys.flag("attention_bias", default=False):
        keys.complain("attention_bias", "biases of this family's attention are not known")
    whole = _own_heads(keys, "").model_copy(
        update={"sinks": keys.flag("add_full_attention_sink_bias")}
    )
    bounded = _own_heads(keys, "swa_").model_copy(
        update={
            "sinks": keys.flag("add_swa_attention_sink_bias"),
            "window_tokens": keys.size(keys.first("sliding_window", "sliding_window_size")),
        }
    )
    keys.raw("attention_chunk_size")  # the window once more, as the prefill kernel cuts it
    return [bounded if here else whole for here in pattern]


def gemma4(keys: Keys, layers: int) -> list[Attention]:
    """Gemma 4: layers that see everything have larger heads, and keys that are values too."""
    for key in ("num_kv_shared_layers", "hidden_size_per_layer_input"):
        if keys.size(key, default=0, least=0):
            keys.complain(key, "layers that share caches or embeddings cannot be described yet")
    kinds = window_kinds(keys, layers)
    bias = keys.flag("attention_bias", default=False)
    bounded = narrow(
        grouped(keys, Form(head_size=256, head_norm=True, bias_default=bias, output_bias=True)),
        keys.size("sliding_window"),
    )
    one = keys.flag("attention_k_eq_v")
    whole = bounded.model_copy(
        update={
            "window_tokens": None,
            "head_size": keys.size("global_head_dim"),
            "kv_heads": keys.size("num_global_key_value_heads", default=bounded.kv_heads),
            "keys_as_values": one,
        }
    )
    if bounded.heads % whole.kv_heads:
        keys.complain("num_global_key_value_heads", f"must divide num_attention_heads ({whole})")
    return [bounded if kind == SLIDING else whole for kind in kinds]


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
