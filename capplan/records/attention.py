"""How a layer mixes tokens, and what it keeps of those it has seen."""

from typing import Annotated, Literal

from pydantic import Field

from capplan.records.base import Record
from capplan.units import Count, PositiveCount, SmallCount


class Indexer(Record):
    """A small attention that chooses which cached tokens the large one reads."""

    heads: PositiveCount
    head_size: PositiveCount
    query_rank: PositiveCount | None = None
    """Size of what its queries are projected from; None for the hidden size."""
    head_weights: bool = True
    """Every token weighs the heads' scores by a projection of its own (DeepSeek); without it
    queries and keys are normalised (MiniMax)."""
    tokens_per_key: PositiveCount = 1
    """Tokens that share one cached index key."""
    pooling: Literal["none", "learned", "overlapping"] = "none"
    """How keys of several tokens become one: by a learned gate (GLM-5.3-Flash), or by a compressor
    whose windows overlap (DeepSeek-V4)."""
    own_keys: bool = True
    """False where the keys are those of an earlier layer (DeepSeek-V4.1)."""
    key_input: PositiveCount | None = None
    """Size of what its keys are projected from; None for the hidden size."""


class Gqa(Record):
    """Grouped-query attention; multi-head attention where kv_heads equals heads."""

    kind: Literal["gqa"]
    heads: PositiveCount
    kv_heads: PositiveCount
    head_size: PositiveCount
    value_head_size: PositiveCount | None = None
    """None where values are as long as keys."""
    projection_bias: bool = False
    """Query, key and value projections carry a bias."""
    output_bias: bool = False
    head_norm: bool = False
    """Queries and keys are normalised a head (Qwen3)."""
    whole_norm: bool = False
    """Queries and keys are normalised over all heads together (OLMoE, MiniMax-M2)."""
    output_gate: bool = False
    """A projection as wide as the queries' gates the result (Qwen3-Next)."""
    sinks: bool = False
    """A learned logit a head takes part in the softmax (gpt-oss)."""
    keys_as_values: bool = False
    """One projection makes keys and values (Gemma 4); the cache holds both."""
    window_tokens: PositiveCount | None = None
    """Latest tokens that are attended to, and all that the cache keeps; None for all."""
    indexer: Indexer | None = None
    read_tokens: PositiveCount | None = None
    """Most cached tokens that a query reads where an indexer chooses; None for all."""


class Mla(Record):
    """Multi-head latent attention: one compressed key-value vector a token, shared by all heads."""

    kind: Literal["mla"]
    heads: PositiveCount
    query_rank: PositiveCount | None
    """Rank of the compressed query; None where queries are projected directly."""
    kv_rank: PositiveCount
    nope_head_size: PositiveCount
    """Query and key size a head without position."""
    rope_head_size: Count
    """Query and key size a head with rotary position; 0 where there is no position at all."""
    value_head_size: PositiveCount
    output_gate: bool = False
    """A projection gates the result (Kimi-K3)."""
    indexer: Indexer | None = None
    """None with `read_tokens` given: the choice of an earlier layer holds here too."""
    read_tokens: PositiveCount | None = None
    """Most cached tokens that a query reads where an indexer chooses; None for all."""


class Compressor(Record):
    """Makes one cached entry of several tokens (DeepSeek-V4)."""

    tokens_per_entry: PositiveCount
    overlapping: bool = False
    """Windows overlap, so its projections are twice as wide."""
    gated: bool = True
    """Tokens are weighed by a projection of their own."""
    positions: bool = True
    """A learned vector a place in the window."""


class Compressed(Record):
    """Attention over a window of single tokens and over compressed entries for the rest.

    Keys and values are one vector for all heads; the output projection has low rank and groups.
    """

    kind: Literal["compressed"]
    heads: PositiveCount
    head_size: PositiveCount
    query_rank: PositiveCount
    output_rank: PositiveCount
    output_groups: PositiveCount
    window_tokens: PositiveCount
    compressor: Compressor | None = None
    """None where there is nothing beyond the window, or an earlier layer's entries are read."""
    indexer: Indexer | None = None
    read_tokens: PositiveCount | None = None
    """Most compressed entries that a query reads; None for all."""


class DeltaNet(Record):
    """Linear attention with a gated delta rule (Qwen3-Next): a state instead of a cache."""

    kind: Literal["delta_net"]
    key_heads: PositiveCount
    value_heads: PositiveCount
    key_head_size: PositiveCount
    value_head_size: PositiveCount
    kernel: SmallCount
    """Tokens that the short convolution sees."""
    state_bits: PositiveCount
    """Stored width of the recurrent state's numbers; the convolution's are as wide as a cache's."""


class Kda(Record):
    """Kimi delta attention: linear attention whose decay is a channel's own."""

    kind: Literal["kda"]
    heads: PositiveCount
    head_size: PositiveCount
    kernel: SmallCount
    """Tokens that the short convolutions see."""
    full_rank_gate: bool = False
    """The output gate is one matrix (Kimi-K3) instead of two of rank head_size."""
    state_bits: PositiveCount


class Mamba(Record):
    """A Mamba-2 layer: a state-space recurrence in place of attention."""

    kind: Literal["mamba"]
    heads: PositiveCount
    head_size: PositiveCount
    groups: PositiveCount
    """Groups of heads that share input and output maps of the state."""
    state_size: PositiveCount
    kernel: SmallCount
    """Tokens that the short convolution sees."""
    convolution_bias: bool = True
    projection_bias: bool = False
    state_bits: PositiveCount


class Cross(Record):
    """Attention to an image's tokens (Llama 3.2 Vision): text adds nothing to its cache."""

    kind: Literal["cross"]
    heads: PositiveCount
    kv_heads: PositiveCount
    head_size: PositiveCount


class NoAttention(Record):
    """The layer mixes no tokens: it is a feed-forward layer alone."""

    kind: Literal["none"]


Attention = Annotated[
    Gqa | Mla | Compressed | DeltaNet | Kda | Mamba | Cross | NoAttention,
    Field(discriminator="kind"),
]
Recurrent = DeltaNet | Kda | Mamba
