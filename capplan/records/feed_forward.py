"""What a layer does to every token by itself."""

from typing import Annotated, Literal

from pydantic import Field

from capplan.records.base import Record
from capplan.units import Count, PositiveCount


class Dense(Record):
    """A feed-forward layer: gate, up and down matrices."""

    kind: Literal["dense"]
    width: PositiveCount
    gated: bool = True
    """False: up and down matrices only (Nemotron)."""
    bias: bool = False


class Moe(Record):
    """A sparse feed-forward layer: a router, routed experts, shared experts."""

    kind: Literal["moe"]
    experts: PositiveCount
    experts_per_token: PositiveCount
    expert_width: PositiveCount
    shared_width: Count = 0
    """Summed width of what every token passes beside the routed experts."""
    gated: bool = True
    """False: experts are up and down matrices only (Nemotron)."""
    router_bias: bool = False
    """The router adds a bias an expert when it chooses (DeepSeek-V3)."""
    router_scales: bool = False
    """The router scales its input and every expert's output by learned factors (Gemma 4)."""
    expert_bias: bool = False
    """Matrices of the routed experts carry a bias (gpt-oss)."""
    shared_gate: bool = False
    """A projection to one number gates the shared expert (Qwen2-MoE)."""
    latent_size: PositiveCount | None = None
    """Routed experts work in a smaller space that two matrices lead into and out of."""
    latent_norm: bool = False


class NoFeedForward(Record):
    """The layer ends after its attention."""

    kind: Literal["none"]


FeedForward = Annotated[Dense | Moe | NoFeedForward, Field(discriminator="kind")]
