"""Attention with grouped queries, and the windows that some layers have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capplan.importers.hugging_face.keys import Keys
from capplan.records.attention import Attention, Gqa

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
    return [narrow(grouped(keys, form), _bounding(keys, size))] * layers


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
    return [narrow(whole, window) if kind == SLIDING else whole for kind in kinds]


def alternating(
    keys: Keys, layers: int, form: Form, every: int | None = None, pattern_key: str | None = None
) -> list[Attention]:
    """Windows in some layers: layer_types says which, else every n-th layer sees everything."""
    whole = grouped(keys, form)
    kinds = window_kinds(keys, layers, every, pattern_key)
    bounded = narrow(whole, keys.size("sliding_window"))
    return [bounded if kind == SLIDING else whole for kind in kinds]


def window_kinds(
    keys: Keys, layers: int, every: int | None = None, pattern_key: str | None = None
) -> Sequence[str]:
    """Which layers have a window."""
    if keys.given("layer_types") or every is None:
        return keys.by_layer("layer_types", layers, (FULL, SLIDING))
    if pattern_key is not None:
        every = keys.size(pattern_key, default=every)
    return [FULL if (layer + 1) % every == 0 else SLIDING for layer in range(layers)]


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


def _bounding(keys: Keys, window: int) -> int | None:
    """The window; None where no context is longer, so that it bounds nothing (Phi-3.5-MoE)."""
    longest = keys.raw("max_position_embeddings")
    return None if type(longest) is int and longest <= window else window


def narrow(whole: Gqa, window: int | None) -> Gqa:
    """The same attention with a window."""
    return whole.model_copy(update={"window_tokens": window})
