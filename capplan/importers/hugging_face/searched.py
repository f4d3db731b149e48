"""Nemotron-NAS: a search has given each layer a width and, to some, no attention."""

from collections.abc import Mapping
from typing import Any, Final

from capplan.importers.hugging_face import feed_forward
from capplan.importers.hugging_face.family import MOST_LAYERS, Layer
from capplan.importers.hugging_face.keys import Keys
from capplan.records.attention import Attention, Gqa, NoAttention
from capplan.records.feed_forward import Dense, FeedForward, NoFeedForward

NOTHING: Final[Layer] = (NoAttention(kind="none"), NoFeedForward(kind="none"))


def layers(keys: Keys) -> list[Layer]:
    """All layers."""
    count = keys.size("num_hidden_layers", most=MOST_LAYERS)
    feed_forward.activation(keys)
    for unset in ("intermediate_size", "num_key_value_heads"):
        if keys.given(unset):
            keys.complain(unset, "must be null where block_configs says it by layer")
    for biased in ("attention_bias", "mlp_bias"):
        if keys.flag(biased, default=False):
            keys.complain(biased, "is known as false only in this family")
    blocks = keys.raw("block_configs")
    if not isinstance(blocks, list) or len(blocks) != count:
        keys.complain("block_configs", f"needs a list with a block for each of {count} layers")
        return [NOTHING] * count
    hidden, widest = keys.size("hidden_size"), _widest(keys)
    found = []
    for block in blocks:
        attention = _attention(_part(block, "attention", "n_heads_in_group"), widest)
        ffn = _ffn(_part(block, "ffn", "ffn_mult"), hidden)
        if attention is None or ffn is None:
            keys.complain("block_configs", f"has a block that is not known: {str(block)[:300]}")
            return [NOTHING] * count
        found.append((attention, ffn))
    return found


def _widest(keys: Keys) -> Gqa:
    heads = keys.size("num_attention_heads")
    size = keys.size("head_dim", default=max(1, keys.size("hidden_size") // heads))
    return Gqa(kind="gqa", heads=heads, kv_heads=heads, head_size=size)


def _part(block: Any, name: str, size: str) -> Any:
    """What a block says of a part: its size, "no_op", or None where there is more to it.

    More means replaced by a linear map, sparsified, windowed and so on.
    """
    part = block.get(name) if isinstance(block, Mapping) else None
    if not isinstance(part, Mapping):
        return None
    if any(value for key, value in part.items() if key not in {"no_op", size}):
        return None
    return "no_op" if part.get("no_op") is True else part.get(size)


def _attention(group: Any, widest: Gqa) -> Attention | None:
    """Query heads of a group share a key."""
    if group == "no_op":
        return NOTHING[0]
    if type(group) is not int or not 0 < group <= widest.heads or widest.heads % group:
        return None
    return widest.model_copy(update={"kv_heads": widest.heads // group})


def _ffn(factor: Any, hidden: int) -> FeedForward | None:
    """Two thirds of the factor times the hidden size, rounded up to 256 (modeling_decilm.py)."""
    if factor == "no_op":
        return NOTHING[1]
    if type(factor) not in {int, float} or not 0 < factor <= 100:
        return None
    width = int(2 * factor * hidden / 3)
    return Dense(kind="dense", width=max(256, width + -width % 256))
