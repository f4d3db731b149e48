"""Counts of parameters and bytes that follow from a model's anatomy.

Conventions. Everything that a checkpoint of the text tower holds is counted once: an output head
that reuses the embedding counts as 0. Heads for multi-token prediction are drafters, not counted.
`active` is what one token passes: all of the model with `experts_per_token` of the routed experts
in each sparse layer, embedding and head included as whole matrices. Makers differ there: Mixtral's
12.9 B and Qwen3's 3.3 B hold both, DeepSeek-V3's 37 B and Kimi-K2's 32 B leave the embedding out.
"""

from dataclasses import dataclass

from capplan.records.architecture import Architecture, Attention, FeedForward, Gqa, Moe


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
    router: int
    norms: int
    head: int

    @property
    def total(self) -> int:
        """All parameters of the model."""
        return self._every_token + self.routed_experts

    @property
    def active(self) -> int:
        """Parameters that one token passes."""
        return self._every_token + self.routed_experts_active

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
    kinds = architecture.layer_kinds
    sparse = [(kind.layers, ff) for kind in kinds if isinstance(ff := kind.feed_forward, Moe)]
    matrix = architecture.vocabulary * hidden
    return Parameters(
        embedding=matrix,
        attention=sum(kind.layers * _attention(kind.attention, hidden) for kind in kinds),
        dense=sum(kind.layers * _dense(kind.feed_forward, hidden) for kind in kinds),
        routed_experts=sum(n * moe.experts * _expert(moe, hidden) for n, moe in sparse),
        routed_experts_active=sum(
            n * moe.experts_per_token * _expert(moe, hidden) for n, moe in sparse
        ),
        shared_experts=sum(n * _gated(moe.shared_width, hidden) for n, moe in sparse),
        router=sum(n * moe.experts * (hidden + moe.router_bias) for n, moe in sparse),
        norms=sum(kind.layers * (2 * hidden + _norms(kind.attention)) for kind in kinds) + hidden,
        head=0 if architecture.tied_embeddings else matrix,
    )


def kv_bytes_per_token(architecture: Architecture, bytes_per_value: float) -> float:
    """Size of one token's entry in the key-value cache, over all layers.

    Args:
        architecture: The model's anatomy.
        bytes_per_value: Size of one cached number. [bytes]

    Returns:
        Keys and values of one token, held once: latent attention keeps one compressed vector and
        one rotary key for all heads. [bytes/token]

    Source:
        DeepSeek-V2 (arXiv 2405.04434), Table 1: 2·n_g·d_h a layer with grouped queries,
        d_c + d_h^R a layer with latent attention.
    """
    values = sum(kind.layers * _kv_values(kind.attention) for kind in architecture.layer_kinds)
    return values * bytes_per_value


def weights_bytes(parameters: Parameters, expert_bits: float, other_bits: float) -> float:
    """Size of the weights when routed experts and the rest are stored at different widths.

    Args:
        parameters: The counts.
        expert_bits: Stored width of a routed expert's parameter, scales included. [bit]
        other_bits: Stored width of every other parameter, shared experts among them. [bit]

    Returns:
        Size of all weights. [bytes]
    """
    other = parameters.total - parameters.routed_experts
    return (parameters.routed_experts * expert_bits + other * other_bits) / 8


def _attention(attention: Attention, hidden: int) -> int:
    if isinstance(attention, Gqa):
        query = attention.heads * attention.head_size
        key_value = 2 * attention.kv_heads * attention.head_size
        bias = (query + key_value) * attention.projection_bias
        return hidden * (query + key_value) + query * hidden + bias
    rank = attention.query_rank
    query = attention.heads * (attention.nope_head_size + attention.rope_head_size)
    query_in = hidden * query if rank is None else (hidden + query) * rank
    compress = hidden * (attention.kv_rank + attention.rope_head_size)
    value = attention.heads * attention.value_head_size
    expand = attention.kv_rank * (attention.heads * attention.nope_head_size + value)
    return query_in + compress + expand + value * hidden


def _norms(attention: Attention) -> int:
    if isinstance(attention, Gqa):
        return 2 * attention.head_size * attention.head_norm
    return attention.kv_rank + (attention.query_rank or 0)


def _kv_values(attention: Attention) -> int:
    if isinstance(attention, Gqa):
        return 2 * attention.kv_heads * attention.head_size
    return attention.kv_rank + attention.rope_head_size


def _dense(feed_forward: FeedForward, hidden: int) -> int:
    return 0 if isinstance(feed_forward, Moe) else _gated(feed_forward.width, hidden)


def _expert(moe: Moe, hidden: int) -> int:
    return _gated(moe.expert_width, hidden)


def _gated(width: int, hidden: int) -> int:
    """Gate, up and down matrices."""
    return 3 * hidden * width
