"""Models whose files describe every layer by itself: Nemotron-H and Nemotron-NAS."""

from collections.abc import Mapping
from typing import Any, Final

from capplan.importers.hugging_face import feed_forward, gqa, recurrent
from capplan.importers.hugging_face.keys import Keys
from capplan.records.attention import Attention, Gqa, NoAttention
from capplan.records.feed_forward import Dense, FeedForward, Moe, NoFeedForward

NO_ATTENTION: Final = NoAttention(kind="none")
NO_FEED_FORWARD: Final = NoFeedForward(kind="none")
LETTERS: Final = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
BLOCKS: Final = tuple(LETTERS.values())
MOST_LAYERS: Final = 10_000

Layer = tuple[Attention, FeedForward]


def nemotron_h(keys: Keys) -> list[Layer]:
    """Every layer is one thing: a state-space layer, attention, or a feed-forward layer."""
    blocks = _blocks(keys, "hybrid_override_pattern", "layers_block_type")
    layers = keys.size("num_hidden_layers", default=len(blocks), most=MOST_LAYERS)
    keys.raw("intermediate_size")  # of dense layers, which not every pattern has
    if layers != len(blocks):
        keys.complain("num_hidden_layers", f"says otherwise than the pattern ({len(blocks)})")
    return layers_of(keys, blocks)


def prediction_blocks(keys: Keys) -> list[str]:
    """Blocks of the head for multi-token prediction."""
    return _blocks(keys, "mtp_hybrid_override_pattern", "mtp_layers_block_type")


def layers_of(keys: Keys, blocks: list[str]) -> list[Layer]:
    """The layers that blocks mean; only kinds that occur are read."""
    known: dict[str, Layer] = {}
    for block in sorted(set(blocks)):
        if block == "mamba":
            known[block] = (recurrent.mamba(keys), NO_FEED_FORWARD)
        elif block == "attention":
            known[block] = (_attention(keys), NO_FEED_FORWARD)
        elif block == "mlp":
            known[block] = (NO_ATTENTION, _squared(keys))
        else:
            known[block] = (NO_ATTENTION, _experts(keys))
    return [known[block] for block in blocks]


def nemotron_nas(keys: Keys) -> list[Layer]:
    """A search has given each layer a width and, to some, no attention."""
    blocks = keys.raw("block_configs")
    layers = keys.size("num_hidden_layers", most=MOST_LAYERS)
    if not isinstance(blocks, list) or len(blocks) != layers:
        keys.complain("block_configs", f"needs a list with a block for each of {layers} layers")
        return [(NO_ATTENTION, NO_FEED_FORWARD)] * layers
    feed_forward.activation(keys)
    for unset in ("intermediate_size", "num_key_value_heads"):
        if keys.given(unset):
            keys.complain(unset, "must be null where block_configs says it by layer")
    heads, hidden = keys.size("num_attention_heads"), keys.size("hidden_size")
    head_size = keys.size("head_dim", default=max(1, hidden // heads))
    if keys.flag("attention_bias", default=False) or keys.flag("mlp_bias", default=False):
        keys.complain("attention_bias", "and mlp_bias are known as false only in this family")
    widest = Gqa(kind="gqa", heads=heads, kv_heads=heads, head_size=head_size)
    found: list[Layer] = []
    for block in blocks:
        layer = _searched(block, widest, hidden)
        if layer is None:
            keys.complain("block_configs", f"has a block that is not known: {str(block)[:200]}")
            return [(NO_ATTENTION, NO_FEED_FORWARD)] * layers
        found.append(layer)
    return found


def _searched(block: Any, widest: Gqa, hidden: int) -> Layer | None:
    """One block; None where it says something that is not known."""
    parts = [block.get(part) if isinstance(block, Mapping) else None for part in _PARTS]
    for part, (name, meaning) in zip(parts, _PARTS.items(), strict=True):
        if not isinstance(part, Mapping):
            return None
        if any(value and key not in meaning for key, value in part.items()):
            return None  # replaced by a linear map, sparsified, windowed, …
        if not part.get("no_op") and type(part.get(_SIZES[name])) not in {int, float}:
            return None
    attention, ffn = parts
    group, factor = attention.get("n_heads_in_group"), ffn.get("ffn_mult")
    if not attention.get("no_op") and (type(group) is not int or not 0 < group <= widest.heads):
        return None
    if not ffn.get("no_op") and not 0 < factor <= 100:
        return None
    return (
        NO_ATTENTION
        if attention.get("no_op")
        else widest.model_copy(update={"kv_heads": widest.heads // group}),
        NO_FEED_FORWARD
        if ffn.get("no_op")
        else Dense(kind="dense", width=_rounded_width(factor, hidden)),
    )


_PARTS: Final = {
    "attention": {"no_op", "n_heads_in_group"},
    "ffn": {"no_op", "ffn_mult"},
}
_SIZES: Final = {"attention": "n_heads_in_group", "ffn": "ffn_mult"}


def _rounded_width(factor: float, hidden: int) -> int:
    """Two thirds of the factor times the hidden size, rounded up to 256 (modeling_decilm.py)."""
    width = int(2 * factor * hidden / 3)
    return width if width % 256 == 0 else width + 256 - width % 256


def _blocks(keys: Keys, pattern_key: str, list_key: str) -> list[str]:
    pattern = keys.raw(pattern_key)
    if isinstance(pattern, str):
        blocks = [LETTERS.get(letter, letter) for letter in pattern[: MOST_LAYERS + 1]]
    else:
        listed = keys.raw(list_key)
        blocks = listed if isinstance(listed, list) else []
    name = pattern_key if keys.given(pattern_key) else list_key
    if not 0 < len(blocks) <= MOST_LAYERS:
        keys.complain(name, "needs a pattern or a list of layers")
        return ["attention"]
    if any(not isinstance(block, str) or block not in BLOCKS for block in blocks):
        known = ", ".join(f"{word} ({letter})" for letter, word in LETTERS.items())
        keys.complain(name, f"has a layer that is not known to capplan; known: {known}")
        return ["attention"]
    return blocks


def _attention(keys: Keys) -> Gqa:
    form = gqa.Form(bias_key="attention_bias", output_bias=True)
    window = keys.raw("sliding_window")
    if window is not None:
        keys.complain("sliding_window", "windows of this family are not known")
    return gqa.grouped(keys, form)


def _squared(keys: Keys) -> Dense:
    keys.word("mlp_hidden_act", ("relu2",))
    bias = keys.flag("mlp_bias", default=False)
    return Dense(kind="dense", width=keys.size("intermediate_size"), gated=False, bias=bias)


def _experts(keys: Keys) -> Moe:
    keys.word("mlp_hidden_act", ("relu2",))
    if keys.flag("mlp_bias", default=False):
        keys.complain("mlp_bias", "biases of experts are not known in this family")
    experts, chosen = keys.size("n_routed_experts"), keys.size("num_experts_per_tok")
    if chosen > experts:
        keys.complain("num_experts_per_tok", f"must not exceed n_routed_experts ({experts})")
    shared = keys.size("n_shared_experts", least=0, most=1000)
    width = keys.size("moe_shared_expert_intermediate_size", least=0)
    latent = keys.given("moe_latent_size")
    return Moe(
        kind="moe",
        experts=experts,
        experts_per_token=chosen,
        expert_width=keys.size("moe_intermediate_size"),
        shared_width=shared * width,
        gated=False,
        router_bias=True,
        latent_size=keys.size("moe_latent_size") if latent else None,
    )
