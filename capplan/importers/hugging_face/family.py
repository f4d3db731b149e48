"""What it takes to read one `model_type`."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from capplan.importers.hugging_face.keys import Keys
from capplan.records.architecture import DraftHead, LayerKind, LookupTable
from capplan.records.attention import Attention
from capplan.records.feed_forward import FeedForward

MOST_LAYERS: Final = 10_000
Layer = tuple[Attention, FeedForward]


@dataclass(frozen=True)
class Names:
    """What a checkpoint calls a layer's blocks, in the common form of `patterns`."""

    attention: str = "self_attn"
    linear: str = "linear_attn"
    feed_forward: str = "mlp"
    experts: str = "mlp.experts"
    shared: str = "mlp.shared_experts"


USUAL_NAMES: Final = Names()


@dataclass(frozen=True)
class Family:
    """Readers of a model type's keys, and what it says without writing it.

    Defaults are those of the family's configuration class in `transformers`, and only for keys
    that real files of the family leave out. All else is required: a file without it was abridged.
    """

    attention: Callable[[Keys, int], list[Attention]] | None = None
    feed_forward: Callable[[Keys, int], list[FeedForward]] | None = None
    layers: Callable[[Keys], list[Layer]] | None = None
    """Instead of the two, where the file describes whole layers."""
    prediction: Callable[[Keys, list[LayerKind]], DraftHead | None] | None = None
    lookup_tables: Callable[[Keys], tuple[LookupTable, ...]] | None = None
    norms: int = 2
    """Vectors of hidden size in a layer of attention and feed-forward."""
    norms_beside_experts: int = 0
    """More of them in sparse layers (Gemma 4)."""
    norm_bias: bool = False
    tied: bool = False
    head_bias_key: str | None = None
    streams_key: str | None = None
    stream_head: bool = False
    context: int | None = None
    """Longest context where the file may leave max_position_embeddings out."""
    residuals_key: str | None = None
    """Key of residuals between blocks of layers, each with two norms and two vectors (Kimi-K3)."""
    names: Names = USUAL_NAMES
    ignored: frozenset[str] = frozenset()
    """Keys that files of the family carry and its code never reads, or that restate others."""

    def read_layers(self, keys: Keys) -> list[Layer]:
        """All layers, in the model's order."""
        if self.layers is not None:
            return self.layers(keys)
        assert self.attention is not None
        assert self.feed_forward is not None
        count = keys.size("num_hidden_layers", most=MOST_LAYERS)
        if keys.complained_of("num_hidden_layers"):
            keys.size("num_attention_heads")
            keys.check()  # what depends on the number of layers would be complained of in vain
        return list(zip(self.attention(keys, count), self.feed_forward(keys, count), strict=True))


def together(in_order: list[LayerKind]) -> tuple[LayerKind, ...]:
    """Layers of one shape together, in the order in which their shapes first occur."""
    counted: dict[str, LayerKind] = {}
    for kind, run in groupby(in_order):
        shape = kind.model_dump_json()
        known = counted.get(shape)
        more = sum(one.layers for one in run) + (known.layers if known else 0)
        counted[shape] = kind.model_copy(update={"layers": more})
    return tuple(counted.values())
