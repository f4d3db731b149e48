"""Nemotron-H: a pattern says of every layer which one thing it is."""

from typing import Final

from capplan.importers.hugging_face import gqa, recurrent
from capplan.importers.hugging_face.family import MOST_LAYERS, Layer
from capplan.importers.hugging_face.keys import Keys
from capplan.records.attention import Gqa, NoAttention
from capplan.records.feed_forward import Dense, Moe, NoFeedForward

NO_ATTENTION: Final = NoAttention(kind="none")
NO_FEED_FORWARD: Final = NoFeedForward(kind="none")
LETTERS: Final = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
BLOCKS: Final = tuple(LETTERS.values())


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
    if any(block not in BLOCKS for block in blocks):
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
