"""Every matrix of a model under the name that a configuration would call it by."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from capplan.importers.hugging_face.family import Layer, Names
from capplan.physics.attention_parts import attention_parts
from capplan.physics.parameters import expert_parameters
from capplan.records.attention import Attention
from capplan.records.feed_forward import FeedForward, Moe, NoFeedForward

Component = Literal["attention", "dense", "routed_experts", "shared_experts"]

KEPT: Final = frozenset(
    {
        "indexer.weights_proj",
        "indexer.wk",
        "indexer.compressor",
        "compressor",
        "in_proj_a",
        "in_proj_b",
    }
)
"""Small matrices that no checkpoint narrows, listed or not."""


@dataclass(frozen=True)
class Module:
    """One matrix, or several alike."""

    component: Component
    name: str
    """Inside its layer."""
    count: int
    narrowable: bool = True


def of_layer(layer: Layer, hidden: int, names: Names) -> Iterator[Module]:
    """The matrices of one layer."""
    attention, feed_forward = layer
    yield from _attention(attention, hidden, names)
    yield from _feed_forward(feed_forward, hidden, names)


def _attention(attention: Attention, hidden: int, names: Names) -> Iterator[Module]:
    where = names.linear if attention.kind == "delta_net" else names.attention
    for name, count in attention_parts(attention, hidden).matrices.items():
        yield Module("attention", f"{where}.{name}", count, name not in KEPT)


def _feed_forward(shape: FeedForward, hidden: int, names: Names) -> Iterator[Module]:
    if isinstance(shape, NoFeedForward):
        return
    if not isinstance(shape, Moe):
        for name in _matrices(shape.gated):
            yield Module("dense", f"{names.feed_forward}.{name}", hidden * shape.width)
        return
    each = expert_parameters(shape, hidden) * shape.experts // len(_matrices(shape.gated))
    for name in _matrices(shape.gated):
        yield Module("routed_experts", f"{names.experts}.0.{name}", each)
        if shape.shared_width:
            yield Module("shared_experts", f"{names.shared}.{name}", hidden * shape.shared_width)
    if shape.latent_size:
        for name in ("routed_expert_down_proj", "routed_expert_up_proj"):
            size = hidden * shape.latent_size
            yield Module("shared_experts", f"{names.feed_forward}.{name}", size)


def _matrices(gated: bool) -> tuple[str, ...]:
    return ("gate_proj", "up_proj", "down_proj") if gated else ("up_proj", "down_proj")
