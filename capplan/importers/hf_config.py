"""A Hugging Face `config.json` becomes an Architecture.

Only families whose step this version can describe are read (`hf_families`). What is not understood
is refused by name: a parameter count that ignores half of a model is worse than none. Defaults are
those of the family's configuration class in `transformers`.
"""

from collections.abc import Mapping
from typing import Any, Final

from capplan.errors import Complaint, InputError
from capplan.importers.hf_families import FAMILIES, NESTED, REFUSED, Family
from capplan.importers.hf_keys import Keys, Where
from capplan.records.architecture import (
    Architecture,
    Attention,
    Dense,
    FeedForward,
    Gqa,
    LayerKind,
    Mla,
    Moe,
)
from capplan.records.caveat import Source

MOST_LAYERS: Final = 10_000
SILU: Final = ("silu", "swish")
"""Both names of the activation that all families gate with."""


def architecture(tree: Any, name: str, where: Where) -> Architecture:
    """Reads a model's anatomy from its configuration.

    Args:
        tree: The parsed `config.json`.
        name: What the model is to be called.
        where: Place of a key path in the file, as `file:line:column`.

    Returns:
        The text model's anatomy.

    Raises:
        InputError: If the model type is unknown, uses what cannot be described yet, or if keys
            are missing or wrong; all complaints at once.
    """
    keys, family = _text_model(tree, where)
    _refuse(keys, family)
    attention = _latent(keys) if family.latent_attention else _grouped(keys, family)
    kinds = _layer_kinds(keys, family, attention)
    hidden = keys.size("hidden_size")
    vocabulary = keys.size("vocab_size")
    tied = keys.flag("tie_word_embeddings", default=False)
    keys.check()
    return Architecture(
        version=1,
        name=name,
        hidden_size=hidden,
        vocabulary=vocabulary,
        tied_embeddings=tied,
        layer_kinds=kinds,
        source=Source(what="all of the anatomy", where=f"config.json of {name}"),
    )


def _text_model(tree: Any, where: Where) -> tuple[Keys, Family]:
    """The language model's own keys and its family."""
    prefix: tuple[str, ...] = ()
    if isinstance(tree, Mapping) and tree.get("model_type") in NESTED:
        prefix = ("text_config",)
        tree = tree.get("text_config")
    if not isinstance(tree, Mapping):
        rule = "needs a mapping, as in a Hugging Face config.json"
        raise InputError([Complaint(where(()), ".".join(prefix), rule, type(tree).__name__)])
    keys = Keys(tree, prefix, where)
    model_type = tree.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        known = ", ".join(sorted([*FAMILIES, *NESTED]))
        keys.complain("model_type", "not a model type that capplan can read", f"Known: {known}.")
        keys.check()
    return keys, FAMILIES[str(model_type)]


def _refuse(keys: Keys, family: Family) -> None:
    """Complains about whatever the file says that the record cannot."""
    for key, what in REFUSED.items():
        if keys.given(key) and keys.raw(key) is not False:
            keys.complain(key, f"{what} cannot be planned yet")
    if keys.given("hidden_act") and keys.raw("hidden_act") not in SILU:
        keys.complain("hidden_act", "only gated silu, as in these families, can be planned yet")
    if _windowed(keys, family):
        keys.complain(
            "sliding_window",
            "attention windows, which shrink the cache, cannot be planned yet",
            "If the model has none, write null.",
        )
    layer_types = keys.raw("layer_types") or []
    if not isinstance(layer_types, list) or any(kind != "full_attention" for kind in layer_types):
        keys.complain("layer_types", "only full_attention can be planned yet")
    foreign = {"num_experts", "num_local_experts", "n_routed_experts"} - {family.experts_key}
    for key in sorted(foreign):
        if keys.given(key):
            keys.complain(key, "this model type names its experts otherwise or has none")


def _windowed(keys: Keys, family: Family) -> bool:
    if family.window == "switched":
        return keys.flag("use_sliding_window", default=False)
    missing = "sliding_window" not in keys
    return keys.given("sliding_window") or (missing and family.window == "unless null")


def _head_counts(keys: Keys) -> tuple[int, int]:
    heads = keys.size("num_attention_heads")
    return heads, keys.size("num_key_value_heads", default=heads)


def _grouped(keys: Keys, family: Family) -> Attention:
    heads, kv_heads = _head_counts(keys)
    if heads % kv_heads:
        keys.complain("num_key_value_heads", f"must divide num_attention_heads ({heads})")
    hidden = keys.size("hidden_size")
    head_size = keys.size("head_dim", default=family.head_size or max(hidden // heads, 1))
    if not keys.given("head_dim") and family.head_size is None and hidden % heads:
        keys.complain("hidden_size", f"must be a multiple of num_attention_heads ({heads})")
    bias = family.bias_default
    if family.bias_key is not None:
        bias = keys.flag(family.bias_key, default=bias)
    return Gqa(
        kind="gqa",
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        projection_bias=bias,
        head_norm=family.head_norm,
    )


def _latent(keys: Keys) -> Attention:
    """Latent attention; a head_dim that dumps of transformers 5 add means the rotary part only."""
    if "q_lora_rank" not in keys:
        keys.complain("q_lora_rank", "needs the query's rank, or null where queries have none")
    if keys.flag("attention_bias", default=False):
        keys.complain("attention_bias", "biases of latent attention cannot be planned yet")
    return Mla(
        kind="mla",
        heads=keys.size("num_attention_heads"),
        query_rank=keys.size("q_lora_rank") if keys.given("q_lora_rank") else None,
        kv_rank=keys.size("kv_lora_rank"),
        nope_head_size=keys.size("qk_nope_head_dim"),
        rope_head_size=keys.size("qk_rope_head_dim"),
        value_head_size=keys.size("v_head_dim"),
    )


def _layer_kinds(keys: Keys, family: Family, attention: Attention) -> tuple[LayerKind, ...]:
    """Dense layers before sparse ones, whatever their order in the model."""
    layers = keys.size("num_hidden_layers", most=MOST_LAYERS)
    sparse = _sparse_layers(keys, family, layers)
    kinds = []
    if sparse < layers:
        dense = Dense(kind="dense", width=keys.size("intermediate_size"))
        kinds.append(_kind(layers - sparse, attention, dense))
    if sparse:
        kinds.append(_kind(sparse, attention, _moe(keys, family)))
    return tuple(kinds)


def _kind(layers: int, attention: Attention, feed_forward: FeedForward) -> LayerKind:
    return LayerKind(layers=layers, attention=attention, feed_forward=feed_forward)


def _sparse_layers(keys: Keys, family: Family, layers: int) -> int:
    """How many layers have routed experts."""
    if family.experts_key is None:
        return 0
    if family.experts_key == "n_routed_experts":
        return _sparse_after_dense(keys, layers)
    every = keys.size("decoder_sparse_step", default=1)
    dense = set(keys.whole_numbers("mlp_only_layers"))
    if keys.raw("num_hidden_layers") == layers and not dense <= set(range(layers)):
        keys.complain("mlp_only_layers", f"needs numbers of layers, from 0 to {layers - 1}")
    return sum((layer + 1) % every == 0 and layer not in dense for layer in range(layers))


def _sparse_after_dense(keys: Keys, layers: int) -> int:
    """DeepSeek's rule: the first layers are dense, then every moe_layer_freq-th is sparse."""
    first = keys.size("first_k_dense_replace", default=0, least=0)
    if first > layers == keys.raw("num_hidden_layers"):
        keys.complain("first_k_dense_replace", f"must not exceed num_hidden_layers ({layers})")
    if not isinstance(keys.raw("moe_layer_freq"), list):
        every = keys.size("moe_layer_freq", default=1)
        return sum(layer >= first and layer % every == 0 for layer in range(layers))
    pattern = keys.whole_numbers("moe_layer_freq")
    if len(pattern) != layers or not set(pattern) <= {0, 1}:
        keys.complain("moe_layer_freq", f"needs a 0 or 1 for each of the {layers} layers")
        return layers  # a stand-in that later rules can rest on
    return sum(pattern[first:])


def _moe(keys: Keys, family: Family) -> Moe:
    experts = keys.size(str(family.experts_key))
    chosen = keys.size("num_experts_per_tok")
    if chosen > experts:
        keys.complain("num_experts_per_tok", f"must not exceed {family.experts_key} ({experts})")
    width = keys.size(family.width_key)
    shared = width * keys.size("n_shared_experts", default=0, least=0)
    return Moe(
        kind="moe",
        experts=experts,
        experts_per_token=chosen,
        expert_width=width,
        shared_width=shared + keys.size("shared_expert_intermediate_size", default=0, least=0),
        router_bias=family.router_bias,
    )
