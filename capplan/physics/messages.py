"""What the GPUs of a replica tell one another in a layer."""

from dataclasses import dataclass
from typing import Final, Literal

from capplan.physics.sharding import Split
from capplan.records.architecture import LayerKind, Moe

SENT_BYTES: Final = 2
"""Hidden numbers travel in 16 bits."""

Pattern = Literal["all-reduce", "all-to-all", "gather and scatter"]


@dataclass(frozen=True)
class Sent:
    """Messages of one kind in one layer."""

    pattern: Pattern
    count: int
    bytes_per_token: float
    """All of them together, of one token. [bytes/token]"""


def messages(kind: LayerKind, hidden: int, split: Split) -> tuple[Sent, ...]:
    """Messages of a layer.

    Heads and widths split over GPUs end in a sum over them (all-reduce), after attention and after
    the feed-forward layer: the payload is a hidden vector each. Where attention has copies with
    sequences of their own, tokens must reach the experts: sent to whole experts and back
    (all-to-all), a hidden vector for each chosen one at most; or, where every GPU holds a slice of
    every expert, gathered from all and scattered.

    Source:
        Megatron-LM (arXiv 1909.08053), section 3; DeepEP, dispatch and combine.
    """
    vector = hidden * SENT_BYTES
    sums = split.tensor > 1 and (kind.attention.kind != "none")
    forward = kind.feed_forward
    if isinstance(forward, Moe) and split.copies > 1:
        sent = (forward.latent_size or hidden) * SENT_BYTES
        if split.expert > 1:
            among = Sent("all-to-all", 2, 2 * min(forward.experts_per_token, split.expert) * sent)
        else:
            among = Sent("gather and scatter", 2, 2 * sent)
        return (*((Sent("all-reduce", 1, vector),) if sums else ()), among)
    total = sums + (split.tensor > 1 and forward.kind != "none")
    return (Sent("all-reduce", total, total * vector),) if total else ()
