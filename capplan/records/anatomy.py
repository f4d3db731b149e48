"""What `capplan show` tells of a model: where its bytes are, and how it fits a set of GPUs."""

from typing import Literal

from capplan.records.architecture import LayerKind, Published
from capplan.records.base import Record
from capplan.records.caveat import Caveat, Source
from capplan.records.stored import Bits, Stored
from capplan.units import (
    Bytes,
    BytesPerSequence,
    BytesPerToken,
    Count,
    MeanCount,
    PositiveCount,
    Ratio,
    Seconds,
    SmallCount,
)

KvPrecision = Literal["bf16", "fp8"]


class Component(Record):
    """Parameters of one purpose."""

    name: str
    parameters: Count
    parameters_active: Count
    """Of one token."""
    bits: Bits
    weights_bytes: Bytes


class KindCache(Record):
    """Layers of one kind, and what they keep of a sequence."""

    kind: LayerKind
    kv_bytes_per_token: BytesPerToken
    """Growth with the context."""
    window_tokens: Count
    window_bytes_per_sequence: BytesPerSequence
    """Of a full window."""
    state_bytes_per_sequence: BytesPerSequence


class Touched(Record):
    """What one decoding step reads, with experts chosen independently (modelled)."""

    batch: SmallCount
    distinct_experts: MeanCount | None
    """A sparse layer, mean over them; None in a dense model."""
    weights_read_bytes: Bytes
    cache_read_bytes: Bytes


class Message(Record):
    """What layers of one kind tell among GPUs."""

    layers: PositiveCount
    pattern: Literal["all-reduce", "all-to-all", "gather and scatter"]
    count: PositiveCount
    """A layer."""
    bytes_per_token: BytesPerToken
    """A layer, all of its messages of this pattern together."""


class Share(Record):
    """What one GPU of a layout holds."""

    attention_bytes: Bytes
    experts_bytes: Bytes
    """Routed experts."""
    weights_bytes: Bytes
    """All of the model, its head for multi-token prediction left out."""
    drafter_bytes: Bytes | None
    experts_per_gpu: Count
    """Routed experts of a layer that it holds, or holds slices of."""
    expert_slices: SmallCount
    """GPUs that share each of them."""
    kv_bytes_per_token: BytesPerToken
    sequence_bytes: Bytes
    """Of one sequence of its copy, no drafter loaded."""
    sequences: Count
    """That fit the whole replica, no drafter loaded."""
    sequences_with_drafter: Count | None
    messages: tuple[Message, ...]


class Layout(Record):
    """One way to share a model among GPUs."""

    tp: SmallCount
    ep: SmallCount
    copies: SmallCount
    """Of attention, each with sequences of its own."""
    refused: tuple[str, ...] = ()
    share: Share | None
    """None where it is refused."""


class Drafter(Record):
    """What drafts, on the whole replica."""

    name: str
    parameters: Count
    weights_bytes: Bytes
    """One copy."""
    kv_bytes_per_token: BytesPerToken
    draft_tokens: PositiveCount
    whole: bool
    """It cannot be split as the model is, so every GPU holds all of it."""


class Ridge(Record):
    """Where a part of a decoding step turns compute-bound."""

    part: str
    batch: Ratio | None
    """Sequences; None for never, or where the fleet does not give a rate."""
    batch_with_drafter: Ratio | None
    reason: str


class Remedy(Record):
    """A change that makes room for more sequences."""

    lever: Literal[
        "kv precision",
        "layout",
        "look-ahead",
        "smaller drafter",
        "drafter",
        "context",
        "gpu",
        "host memory",
    ]
    change: str
    sequences: Count
    gained: int
    waits_s: Seconds | None = None
    """What a decoding step of that many sequences waits for host memory (modelled: tokens choose
    experts independently, nothing is fetched ahead). None where nothing lies there."""


class Fit(Record):
    """A model on a set of GPUs."""

    gpu: str
    gpus: SmallCount
    memory_bytes: Bytes
    """Of one GPU, as the driver reports it."""
    usable_bytes: Bytes
    """Of one GPU, for weights, drafter and caches."""
    asked: Layout
    others: tuple[Layout, ...]
    """For comparison."""
    drafter: Drafter | None
    ridges: tuple[Ridge, ...]
    memory_binds: bool | None
    """Whether memory ends the batch before arithmetic does; None where no rate is known."""
    remedies: tuple[Remedy, ...]
    """By sequences gained."""


class Anatomy(Record):
    """One model."""

    version: Literal[1]
    capplan: str
    model: str
    source: Source
    published: Published | None
    parameters_total: Count
    parameters_active: Count
    """Of one token, embedding and output head as whole matrices."""
    parameters_active_without_embedding: Count
    parameters_prediction: Count
    """Heads for multi-token prediction, beside the total."""
    weights_bytes: Bytes
    """Of the total, at the precision."""
    precision: str
    stored: Stored
    components: tuple[Component, ...]
    kv_precision: KvPrecision
    kv_bytes_per_token: BytesPerToken
    state_bytes_per_sequence: BytesPerSequence
    """Recurrent states and full windows."""
    context_tokens: PositiveCount
    context_bytes_per_sequence: BytesPerSequence
    """All that a sequence of this context keeps."""
    caches: tuple[KindCache, ...]
    touched: tuple[Touched, ...]
    fit: Fit | None = None
    caveats: tuple[Caveat, ...] = ()
