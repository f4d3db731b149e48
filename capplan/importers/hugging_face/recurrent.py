"""Layers with a state in place of a cache, and which layers of a hybrid they are."""

from typing import Final

from capplan.importers.hugging_face import gqa, latent
from capplan.importers.hugging_face.keys import Keys
from capplan.records.attention import Attention, DeltaNet, Kda, Mamba

LINEAR: Final = "linear_attention"
STATE_BITS: Final = {"float32": 32, "bfloat16": 16, "float16": 16, "auto": 32}
MOST_HEADS: Final = 65_536
LARGEST_KERNEL: Final = 1_000


def delta_net_hybrid(keys: Keys, layers: int, form: gqa.Form) -> list[Attention]:
    """Qwen3-Next and Qwen3.5: three layers of four have a gated delta net."""
    linear = _delta_net(keys)
    whole = gqa.grouped(keys, form)
    every = keys.size("full_attention_interval")
    if keys.given("layer_types"):
        kinds = keys.by_layer("layer_types", layers, (gqa.FULL, LINEAR))
    else:
        kinds = [LINEAR if (layer + 1) % every else gqa.FULL for layer in range(layers)]
    return [linear if kind == LINEAR else whole for kind in kinds]


def kda_hybrid(keys: Keys, layers: int) -> list[Attention]:
    """Kimi-Linear and Kimi-K3: layers counted from 1, all others latent attention."""
    whole = latent.latent(keys)
    inner = keys.inside("linear_attn_config")
    kda, full = (inner.whole_numbers(key) for key in ("kda_layers", "full_attn_layers"))
    if sorted([*kda, *full]) != list(range(1, layers + 1)):
        inner.complain("kda_layers", f"and full_attn_layers need each of 1 to {layers} once")
    linear = _kda(inner)
    places = set(kda)
    return [linear if layer + 1 in places else whole for layer in range(layers)]


def sparse_kda_hybrid(keys: Keys, layers: int) -> list[Attention]:
    """GLM-5.3-Flash: layer_types says which layers have latent attention with an indexer."""
    whole = latent.with_indexer(keys, latent.latent(keys))
    kinds = keys.by_layer("layer_types", layers, (LINEAR, latent.SPARSE))
    if keys.given("indexer_types"):
        keys.by_layer("indexer_types", layers, (latent.OWN,))
    inner = keys.inside("linear_attn_config")
    for restated in ("kda_layers", "full_attn_layers"):
        inner.raw(restated)
    linear = _kda(inner)
    keys.fixed("linear_num_heads", linear.heads)
    keys.fixed("linear_head_dim", linear.head_size)
    keys.fixed("linear_conv_kernel_dim", linear.kernel)
    return [linear if kind == LINEAR else whole for kind in kinds]


def mamba(keys: Keys) -> Mamba:
    """One Mamba-2 layer, under the names of Nemotron-H."""
    kernel = keys.size("conv_kernel", most=LARGEST_KERNEL)
    return Mamba(
        kind="mamba",
        heads=keys.size("mamba_num_heads", most=MOST_HEADS),
        head_size=keys.size("mamba_head_dim"),
        groups=keys.size("n_groups", most=MOST_HEADS),
        state_size=keys.size("ssm_state_size"),
        kernel=kernel,
        convolution_bias=keys.flag("use_conv_bias"),
        projection_bias=keys.flag("use_bias") or keys.flag("mamba_proj_bias"),
        state_bits=_state_bits(keys, "mamba_ssm_cache_dtype"),
    )


def _delta_net(keys: Keys) -> DeltaNet:
    values, key_heads = keys.size("linear_num_value_heads"), keys.size("linear_num_key_heads")
    if values % key_heads:
        keys.complain("linear_num_key_heads", f"must divide linear_num_value_heads ({values})")
    return DeltaNet(
        kind="delta_net",
        key_heads=key_heads,
        value_heads=values,
        key_head_size=keys.size("linear_key_head_dim"),
        value_head_size=keys.size("linear_value_head_dim"),
        kernel=keys.size("linear_conv_kernel_dim", most=LARGEST_KERNEL),
        state_bits=_state_bits(keys, "mamba_ssm_dtype"),
    )


def _kda(inner: Keys) -> Kda:
    return Kda(
        kind="kda",
        heads=inner.size("num_heads", most=MOST_HEADS),
        head_size=inner.size("head_dim"),
        kernel=inner.size("short_conv_kernel_size", most=LARGEST_KERNEL),
        full_rank_gate=inner.flag("use_full_rank_gate", default=False),
        state_bits=32,  # what engines keep it in; the configuration does not say
    )


def _state_bits(keys: Keys, key: str) -> int:
    """Width of the state: 32 where nothing is said, which is how engines keep it."""
    return STATE_BITS[keys.word(key, tuple(STATE_BITS), default="float32")]
