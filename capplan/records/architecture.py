"""A model's anatomy, as far as it decides what a step reads, computes and keeps."""

from typing import Annotated, Literal

from pydantic import Field

from capplan.records.base import Record
from capplan.records.caveat import Source
from capplan.units import Count, Parameters, PositiveCount


class Gqa(Record):
    """Grouped-query attention; multi-head attention where kv_heads equals heads."""

    kind: Literal["gqa"]
    heads: PositiveCount
    kv_heads: PositiveCount
    head_size: PositiveCount
    projection_bias: bool = False
    """Query, key and value projections carry a bias."""
    head_norm: bool = False
    """Queries and keys are normalised a head (Qwen3)."""


class Mla(Record):
    """Multi-head latent attention: one compressed key-value vector a token, shared by all heads."""

    kind: Literal["mla"]
    heads: PositiveCount
    query_rank: PositiveCount | None
    """Rank of the compressed query; None where queries are projected directly."""
    kv_rank: PositiveCount
    nope_head_size: PositiveCount
    """Query and key size a head without position."""
    rope_head_size: PositiveCount
    """Query and key size a head with rotary position."""
    value_head_size: PositiveCount


class Dense(Record):
    """A gated feed-forward layer: gate, up and down matrices."""

    kind: Literal["dense"]
    width: PositiveCount


class Moe(Record):
    """A sparse feed-forward layer: a router, routed experts, shared experts."""

    kind: Literal["moe"]
    experts: PositiveCount
    experts_per_token: PositiveCount
    expert_width: PositiveCount
    shared_width: Count = 0
    """Summed width of the experts that every token passes."""
    router_bias: bool = False
    """The router adds a bias an expert when it chooses (DeepSeek-V3)."""


Attention = Annotated[Gqa | Mla, Field(discriminator="kind")]
FeedForward = Annotated[Dense | Moe, Field(discriminator="kind")]


class LayerKind(Record):
    """Layers of one shape; their order does not matter to a step's time."""

    layers: PositiveCount
    attention: Attention
    feed_forward: FeedForward


class Published(Record):
    """What the model's makers say, for checking."""

    parameters_total: Parameters
    parameters_active: Parameters | None = None
    source: Source


class Architecture(Record):
    """One language model (the text tower; vision towers are not planned)."""

    version: Literal[1]
    name: str
    hidden_size: PositiveCount
    vocabulary: PositiveCount
    tied_embeddings: bool
    """The output head reuses the embedding."""
    layer_kinds: tuple[LayerKind, ...] = Field(min_length=1)
    source: Source
    published: Published | None = None
