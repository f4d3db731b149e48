"""Dense and sparse feed-forward layers, and which of a model's layers are which."""

from dataclasses import dataclass
from typing import Final, Literal

from capplan.importers.hugging_face.keys import Keys
from capplan.records.feed_forward import Dense, FeedForward, Moe

GATED: Final = (
    "silu",
    "swish",
    "swigluoai",
    "situ",
    "gelu",
    "gelu_new",
    "gelu_fast",
    "gelu_pytorch_tanh",
)
"""Activations that the families here put on a gate; another one may mean two matrices only."""

Shared = Literal["none", "number", "width", "gated width"]
"""How a family states shared experts: not at all; as a number of experts as wide as the routed
ones; as one width; as one width, with a gate in front of it."""


@dataclass(frozen=True)
class Sparse:
    """What a family's sparse layers are without its files saying so."""

    experts_keys: tuple[str, ...] = ("n_routed_experts", "num_experts")
    chosen_keys: tuple[str, ...] = ("num_experts_per_tok",)
    width_key: str = "moe_intermediate_size"
    shared: Shared = "none"
    shared_key: str = "n_shared_experts"
    router_bias: bool = False
    router_bias_key: str | None = None
    expert_bias: bool = False
    latent_key: str | None = None
    latent_norm_key: str | None = None
    dense_key: str = "intermediate_size"
    """Width of the layers that are not sparse."""

    @property
    def keys(self) -> set[str]:
        """All that its reader looks at."""
        single = {self.width_key, self.shared_key, self.router_bias_key, self.latent_key}
        return {*self.experts_keys, *self.chosen_keys} | {key for key in single if key}


def activation(keys: Keys) -> None:
    """Gated feed-forward layers are known by their activation."""
    name = keys.first("hidden_act", "hidden_activation")
    if keys.given(name):
        keys.word(name, GATED)


def dense(keys: Keys, layers: int) -> list[FeedForward]:
    """All layers are dense."""
    return [dense_layer(keys)] * layers


def dense_layer(keys: Keys, width_key: str = "intermediate_size") -> Dense:
    """One gated layer."""
    activation(keys)
    bias = keys.flag("mlp_bias", default=False)
    return Dense(kind="dense", width=keys.size(width_key), bias=bias)


def sparse(keys: Keys, layers: int, form: Sparse) -> list[FeedForward]:
    """All layers are sparse (Mixtral, gpt-oss)."""
    return [moe(keys, form)] * layers


def stepped(keys: Keys, layers: int, form: Sparse) -> list[FeedForward]:
    """Qwen: every decoder_sparse_step-th layer is sparse, mlp_only_layers excepted."""
    every = keys.size("decoder_sparse_step", default=1)
    only = set(keys.whole_numbers("mlp_only_layers"))
    if not only <= set(range(layers)):
        keys.complain("mlp_only_layers", f"needs numbers of layers, from 0 to {layers - 1}")
    return mixed(
        keys, [(layer + 1) % every == 0 and layer not in only for layer in range(layers)], form
    )


def after_dense(keys: Keys, layers: int, form: Sparse) -> list[FeedForward]:
    """DeepSeek's rule: the first layers are dense, then every moe_layer_freq-th is sparse."""
    first = keys.size("first_k_dense_replace", default=0, least=0)
    if first > layers:
        keys.complain("first_k_dense_replace", f"must not exceed num_hidden_layers ({layers})")
    if isinstance(keys.raw("moe_layer_freq"), list):
        pattern = keys.by_layer("moe_layer_freq", layers, (0, 1))
        places = [layer >= first and bool(on) for layer, on in enumerate(pattern)]
    else:
        every = keys.size("moe_layer_freq", default=1)
        places = [layer >= first and layer % every == 0 for layer in range(layers)]
    if keys.given("mlp_layer_types"):
        kinds = keys.by_layer("mlp_layer_types", layers, ("dense", "sparse"))
        if [kind == "sparse" for kind in kinds] != places:
            keys.complain("mlp_layer_types", "says otherwise than first_k_dense_replace")
    return mixed(keys, places, form)


def interleaved(keys: Keys, layers: int, form: Sparse) -> list[FeedForward]:
    """Llama 4: every interleave_moe_layer_step-th layer, or moe_layers, is sparse."""
    if keys.given("moe_layers"):
        chosen = set(keys.whole_numbers("moe_layers"))
    else:
        every = keys.size("interleave_moe_layer_step", default=1)
        chosen = set(range(every - 1, layers, every))
    if not chosen <= set(range(layers)):
        keys.complain("moe_layers", f"needs numbers of layers, from 0 to {layers - 1}")
    return mixed(keys, [layer in chosen for layer in range(layers)], form)


def from_to(keys: Keys, layers: int, form: Sparse) -> list[FeedForward]:
    """ERNIE 4.5: sparse between two layers, at an interval."""
    first = keys.size("moe_layer_start_index", default=0, least=0)
    last = keys.size("moe_layer_end_index", default=layers - 1, least=-1)
    every = keys.size("moe_layer_interval", default=1)
    last = layers - 1 if last == -1 else last
    places = [first <= n <= last and (n + 1) % every == 0 for n in range(layers)]
    return mixed(keys, places, form)


def beside_dense(keys: Keys, layers: int) -> list[FeedForward]:
    """Gemma 4: routed experts beside a dense layer that every token passes, or that alone."""
    if keys.flag("use_double_wide_mlp", default=False):
        keys.complain("use_double_wide_mlp", "layers of two widths cannot be described yet")
    if not keys.flag("enable_moe_block"):
        for unused in ("num_experts", "top_k_experts", "moe_intermediate_size"):
            if keys.given(unused):
                keys.complain(unused, "is given, but enable_moe_block is false")
        keys.raw("expert_intermediate_size")
        return dense(keys, layers)
    form = Sparse(("num_experts",), ("top_k_experts",), shared="width")
    beside = moe(keys, form, shared_width=keys.size("intermediate_size"))
    return [beside.model_copy(update={"router_scales": True})] * layers


def mixed(keys: Keys, places: list[bool], form: Sparse) -> list[FeedForward]:
    """Sparse layers at some places, dense ones at the others; reads only what is needed."""
    routed = moe(keys, form) if any(places) else None
    if routed is None:
        keys.read |= form.keys  # what they say is of layers that are not there
    plain = dense_layer(keys, form.dense_key) if not all(places) else None
    if plain is None:
        keys.raw(form.dense_key)  # stated by many files whose layers are all sparse
    found: list[FeedForward] = []
    for here in places:
        layer = routed if here else plain
        assert layer is not None
        found.append(layer)
    return found


def moe(keys: Keys, form: Sparse, shared_width: int | None = None) -> Moe:
    """One sparse layer."""
    activation(keys)
    experts_key = keys.first(*form.experts_keys)
    chosen_key = keys.first(*form.chosen_keys)
    experts = keys.size(experts_key)
    chosen = keys.size(chosen_key)
    if chosen > experts:
        keys.complain(chosen_key, f"must not exceed {experts_key} ({experts})")
    width = keys.size(form.width_key)
    bias = form.router_bias
    if form.router_bias_key is not None:
        bias = keys.flag(form.router_bias_key, default=bias)
    latent = form.latent_key is not None and keys.given(form.latent_key)
    return Moe(
        kind="moe",
        experts=experts,
        experts_per_token=chosen,
        expert_width=width,
        shared_width=_shared(keys, form, width) if shared_width is None else shared_width,
        router_bias=bias,
        expert_bias=form.expert_bias,
        shared_gate=form.shared == "gated width",
        latent_size=keys.size(str(form.latent_key)) if latent else None,
        latent_norm=latent
        and form.latent_norm_key is not None
        and keys.flag(form.latent_norm_key, default=False),
    )


def _shared(keys: Keys, form: Sparse, width: int) -> int:
    if form.shared == "none":
        return 0
    if form.shared == "number":
        return width * keys.size(form.shared_key, default=0, least=0, most=1000)
    return keys.size(form.shared_key, default=0, least=0)
