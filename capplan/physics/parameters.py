"""Counts of parameters that follow from a model's anatomy.

Conventions. Everything that a checkpoint of the text tower holds is counted once: an output head
that reuses the embedding counts as 0; vision and audio towers do not count. Heads for multi-token
prediction are drafters: `prediction`, in memory but not in `total`, as their makers count.
`active` is what one token passes: all of the model with `experts_per_token` of the routed experts
in each sparse layer, embedding and head included as whole matrices, lookup tables left out. Makers
differ there: Mixtral's 12.9 B and Qwen3's 3.3 B hold both matrices, DeepSeek-V3's 37 B, Kimi-K2's
32 B and gpt-oss' 5.1 B leave the embedding out, which is `active_without_embedding`.
"""

from dataclasses import dataclass, field

from capplan.physics.attention_parts import attention_parts
from capplan.records.architecture import (
    Architecture,
    Dense,
    DraftHead,
    FeedForward,
    LayerKind,
    LookupTable,
    Moe,
)


@dataclass(frozen=True)
class Parameters:
    """Parameters by what they do; biases count with their matrices."""

    embedding: int
    attention: int
    dense: int
    routed_experts: int
    routed_experts_active: int
    """The part of `routed_experts` that one token passes; not another addend of `total`."""
    shared_experts: int
    """What every token passes in sparse layers, the way into and out of a latent space with it."""
    router: int
    norms: int
    """Norms, and what mixes several residual streams."""
    head: int
    lookup_tables: int = field(default=0, kw_only=True)
    prediction: int = field(default=0, kw_only=True)
    """Heads for multi-token prediction: in memory, not in `total`."""

    @property
    def total(self) -> int:
        """All parameters of the model."""
        return self._every_token + self.routed_experts + self.lookup_tables

    @property
    def active(self) -> int:
        """Parameters that one token passes."""
        return self._every_token + self.routed_experts_active

    @property
    def active_without_embedding(self) -> int:
        """The same as makers count who leave the input embedding out."""
        return self.active - self.embedding

    @property
    def in_memory(self) -> int:
        """All that a server of the whole checkpoint holds."""
        return self.total + self.prediction

    @property
    def _every_token(self) -> int:
        feed_forward = self.dense + self.shared_experts + self.router
        return self.embedding + self.attention + feed_forward + self.norms + self.head


def count_parameters(architecture: Architecture) -> Parameters:
    """Counts the parameters of a model.

    Args:
        architecture: The model's anatomy.

    Returns:
        The counts, summed over all layers.
    """
    hidden = architecture.hidden_size
    streams = architecture.residual_streams
    tables = architecture.lookup_tables
    layers = count_layers(architecture.layer_kinds, hidden, streams)
    matrix = architecture.vocabulary * hidden
    last = (1 + architecture.extra_norms) * hidden
    if architecture.stream_head:
        last += stream_head(hidden, streams)
    head = 0 if architecture.tied_embeddings else matrix
    return Parameters(
        embedding=matrix,
        attention=layers.attention + sum(_table_reader(table, hidden, streams) for table in tables),
        dense=layers.dense,
        routed_experts=layers.routed_experts,
        routed_experts_active=layers.routed_experts_active,
        shared_experts=layers.shared_experts,
        router=layers.router,
        norms=layers.norms + last,
        head=head + architecture.vocabulary * architecture.head_bias,
        lookup_tables=sum(table.entries * table.width for table in tables),
        prediction=_prediction(architecture),
    )


def count_layers(
    kinds: tuple[LayerKind, ...], hidden: int, streams: int = 1, first_inputs: int = 1
) -> Parameters:
    """Counts the parameters of layers alone.

    Args:
        kinds: The layers; the first of them is the first to run.
        hidden: Size of a hidden vector.
        streams: Residual streams that every sublayer mixes.
        first_inputs: Hidden vectors that the first layer's attention sees side by side.
    """
    attention, norms = 0, 0
    for place, kind in enumerate(kinds):
        parts = attention_parts(kind.attention, hidden)
        attention += kind.layers * parts.attention
        if place == 0 and first_inputs > 1:
            wide = attention_parts(kind.attention, hidden, first_inputs)
            attention += wide.attention - parts.attention
        vectors = kind.norms * hidden * (1 + kind.norm_bias)
        norms += kind.layers * (vectors + parts.norms + _stream_mixing(hidden, streams))
    sparse = [(kind.layers, ff) for kind in kinds if isinstance(ff := kind.feed_forward, Moe)]
    experts = [(layers * expert_parameters(moe, hidden), moe) for layers, moe in sparse]
    return Parameters(
        embedding=0,
        attention=attention,
        dense=sum(kind.layers * _dense(kind.feed_forward, hidden) for kind in kinds),
        routed_experts=sum(each * moe.experts for each, moe in experts),
        routed_experts_active=sum(each * moe.experts_per_token for each, moe in experts),
        shared_experts=sum(layers * _shared(moe, hidden) for layers, moe in sparse),
        router=sum(layers * _router(moe, hidden) for layers, moe in sparse),
        norms=norms,
        head=0,
    )


def count_head(head: DraftHead, hidden: int, streams: int = 1) -> int:
    """Parameters of a drafting head, its own embedding and output head among them.

    Args:
        head: Its anatomy.
        hidden: Size of a hidden vector where the head does not give its own.
        streams: Residual streams of its layers.
    """
    hidden = head.hidden_size or hidden
    layers = count_layers(head.layer_kinds, hidden, streams, head.first_layer_inputs)
    rows = head.embedding_rows + head.head_rows + head.joined_size + head.norms
    return head.copies * (layers.total + hidden * rows + head.other_parameters)


def expert_parameters(moe: Moe, hidden: int) -> int:
    """Parameters of one routed expert."""
    size = moe.latent_size or hidden
    bias = ((1 + moe.gated) * moe.expert_width + size) * moe.expert_bias
    return _matrices(moe.expert_width, size, moe.gated) + bias


def weights_bytes(parameters: Parameters, expert_bits: float, other_bits: float) -> float:
    """Size of the weights when routed experts and the rest are stored at different widths.

    Args:
        parameters: The counts.
        expert_bits: Stored width of a routed expert's parameter, scales included. [bit]
        other_bits: Stored width of every other parameter, shared experts among them. [bit]

    Returns:
        Size of all weights of the model, heads for multi-token prediction left out. [bytes]
    """
    other = parameters.total - parameters.routed_experts
    return (parameters.routed_experts * expert_bits + other * other_bits) / 8


def _prediction(architecture: Architecture) -> int:
    head = architecture.prediction
    if head is None:
        return 0
    return count_head(head, architecture.hidden_size, architecture.residual_streams)


def _dense(feed_forward: FeedForward, hidden: int) -> int:
    if not isinstance(feed_forward, Dense):
        return 0
    width, gated = feed_forward.width, feed_forward.gated
    return _matrices(width, hidden, gated) + ((1 + gated) * width + hidden) * feed_forward.bias


def _shared(moe: Moe, hidden: int) -> int:
    latent = 2 * hidden * (moe.latent_size or 0) + (moe.latent_size or 0) * moe.latent_norm
    return _matrices(moe.shared_width, hidden, moe.gated) + hidden * moe.shared_gate + latent


def _router(moe: Moe, hidden: int) -> int:
    scales = (hidden + moe.experts) * moe.router_scales
    return moe.experts * (hidden + moe.router_bias) + scales


def _matrices(width: int, hidden: int, gated: bool) -> int:
    """Gate, up and down matrices; without the gate two."""
    return (2 + gated) * hidden * width


def _stream_mixing(hidden: int, streams: int) -> int:
    """What attention and feed-forward mix streams by (mHC, as DeepSeek-V4's release has it).

    For each of the two a matrix to the coefficients, a base for every one, and three scales.
    """
    coefficients = streams * (2 + streams)
    return 2 * (coefficients * (streams * hidden + 1) + 3) if streams > 1 else 0


def stream_head(hidden: int, streams: int) -> int:
    """Parameters that make one hidden vector of several residual streams."""
    return streams * (streams * hidden + 1) + 1


def _table_reader(table: LookupTable, hidden: int, streams: int) -> int:
    """Keys a stream and a value from the rows read, and two norms a stream (Engram)."""
    return table.hashes * table.width * hidden * (streams + 1) + 2 * streams * hidden
