"""A model's anatomy, as far as it decides what a step reads, computes and keeps."""

from typing import Literal

from pydantic import Field

from capplan.records.attention import (
    Attention,
    Compressed,
    Compressor,
    Cross,
    DeltaNet,
    Gqa,
    Indexer,
    Kda,
    Mamba,
    Mla,
    NoAttention,
    Recurrent,
)
from capplan.records.base import Record
from capplan.records.caveat import Source
from capplan.records.feed_forward import Dense, FeedForward, Moe, NoFeedForward
from capplan.records.stored import Stored
from capplan.units import Count, Parameters, PositiveCount, SmallCount

__all__ = [
    "Architecture",
    "Attention",
    "Compressed",
    "Compressor",
    "Cross",
    "DeltaNet",
    "Dense",
    "DraftHead",
    "FeedForward",
    "Gqa",
    "Indexer",
    "Kda",
    "LayerKind",
    "LookupTable",
    "Mamba",
    "Mla",
    "Moe",
    "NoAttention",
    "NoFeedForward",
    "Published",
    "Recurrent",
]


class LayerKind(Record):
    """Layers of one shape; their order does not matter to a step's time."""

    layers: PositiveCount
    attention: Attention
    feed_forward: FeedForward
    norms: SmallCount = 2
    """Learned vectors of hidden size: norms, and what else is as long (Kimi-K3's residuals)."""
    norm_bias: bool = False


class LookupTable(Record):
    """A table that hashes of the last tokens point into (Engram, DeepSeek-V4.1).

    A token reads a row for each of its hashes: the table needs memory, not bandwidth.
    """

    entries: PositiveCount
    width: PositiveCount
    hashes: PositiveCount
    """Rows that a token reads; a matrix makes them one key a residual stream and a value."""


class DraftHead(Record):
    """What drafts tokens from a model's own hidden states.

    It comes with the checkpoint (multi-token prediction), or was trained apart (EAGLE-3, DFlash,
    DSpark, Medusa). Embedding and output head are the model's own except where rows are given.
    """

    kind: Literal["mtp", "eagle3", "p-eagle", "dflash", "dspark", "domino", "medusa"]
    layer_kinds: tuple[LayerKind, ...] = ()
    copies: SmallCount = 1
    """Times that all of it stands in memory: one a predicted token for multi-token prediction."""
    draft_tokens: PositiveCount | None = None
    """Tokens that one pass drafts, where the head is made for a number of them."""
    hidden_size: PositiveCount | None = None
    """None for the model's."""
    joined_size: Count = 0
    """Numbers that one matrix joins into a hidden vector: hidden states of several layers, or an
    embedding beside a hidden state."""
    first_layer_inputs: SmallCount = 1
    """2 where the first layer's attention sees the embedding beside the hidden state (EAGLE-3)."""
    norms: Count = 0
    """Learned vectors of hidden size beside those of the layers."""
    embedding_rows: Count = 0
    """Rows of an embedding of its own."""
    head_rows: Count = 0
    """Rows of an output head of its own; Medusa has one a head."""
    token_map_rows: Count = 0
    """Vocabulary that a smaller one is mapped to and from."""
    other_parameters: Count = 0
    """Heads of a kind's own: Markov and confidence heads (DSpark), a recurrent unit (Domino)."""


class Published(Record):
    """What the model's makers say, for checking."""

    parameters_total: Parameters
    parameters_active: Parameters | None = None
    source: Source
    note: str | None = None
    """Why this project's count differs, where it does."""


class Architecture(Record):
    """One language model (the text tower; vision towers are not planned)."""

    version: Literal[1]
    name: str
    hidden_size: PositiveCount
    vocabulary: PositiveCount
    tied_embeddings: bool
    """The output head reuses the embedding."""
    head_bias: bool = False
    residual_streams: SmallCount = 1
    """Hidden vectors that run beside one another, mixed before and after every sublayer
    (hyper-connections, DeepSeek-V4)."""
    stream_head: bool = False
    """Learned weights make one of the streams before the output head."""
    extra_norms: Count = 0
    """Learned vectors of hidden size after the last layer, beside the final norm."""
    context_limit: PositiveCount | None = None
    """Longest context that the configuration allows. [tokens]"""
    layer_kinds: tuple[LayerKind, ...] = Field(min_length=1)
    lookup_tables: tuple[LookupTable, ...] = ()
    prediction: DraftHead | None = None
    """The checkpoint's own head for multi-token prediction: in memory, not in the totals."""
    stored: Stored | None = None
    """How wide the checkpoint's numbers are."""
    source: Source
    published: Published | None = None
