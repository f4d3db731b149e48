"""One GPU's share of a model: a smaller model.

Attention, dense layers, shared experts, embedding and head are split by heads and by width over
`tensor` GPUs; with more GPUs than that, `gpus / tensor` copies of them serve sequences of their
own (data-parallel attention). Routed experts are dealt out whole to `expert` groups, and inside a
group of `gpus / expert` GPUs each is split by width. Latent projections, indexers, routers and
norms stand on every GPU. A key-value head that is not enough for all GPUs is copied.

Source:
    vLLM's ColumnParallelLinear, RowParallelLinear, ReplicatedLinear and FusedMoE layers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from capplan.physics.parameters import Parameters, count_parameters
from capplan.records.architecture import (
    Architecture,
    Attention,
    Dense,
    FeedForward,
    LayerKind,
    Moe,
)


@dataclass(frozen=True)
class Split:
    """How a replica's GPUs share a model."""

    gpus: int
    tensor: int
    expert: int = 1

    @property
    def copies(self) -> int:
        """Groups with sequences of their own."""
        return self.gpus // self.tensor

    @property
    def slices(self) -> int:
        """GPUs that share each routed expert."""
        return self.gpus // self.expert


WHOLE: Final = Split(1, 1)
_ATTENTION_HEADS: Final = {"heads": "attention heads"}
_SPLIT: Final[dict[str, dict[str, str]]] = {
    "gqa": _ATTENTION_HEADS,
    "mla": _ATTENTION_HEADS,
    "compressed": {**_ATTENTION_HEADS, "output_groups": "groups of the output projection"},
    "delta_net": {"key_heads": "key heads", "value_heads": "value heads"},
    "kda": _ATTENTION_HEADS,
    "mamba": _ATTENTION_HEADS,
    "cross": _ATTENTION_HEADS,
    "none": {},
}
"""What is divided, by kind of attention."""
_COPIED: Final[dict[str, dict[str, str]]] = {
    "gqa": {"kv_heads": "key-value heads"},
    "cross": {"kv_heads": "key-value heads"},
    "mamba": {"groups": "groups of heads"},
}
"""What is divided and, where there is too little of it, copied."""


@dataclass(frozen=True)
class Broken:
    """A rule of splitting that a model does not keep."""

    option: str
    """`tp` or `ep`."""
    rule: str
    found: str


def broken_rules(kinds: tuple[LayerKind, ...], split: Split) -> tuple[Broken, ...]:
    """Why layers cannot be split so; each reason once."""
    found = [*_of_gpus(split)]
    if not found:
        for kind in kinds:
            found += _of_attention(kind.attention, split.tensor)
            found += _of_feed_forward(kind.feed_forward, split)
        if split.expert > 1 and not any(isinstance(kind.feed_forward, Moe) for kind in kinds):
            found.append(Broken("ep", "needs routed experts, and the model has none", "dense"))
    return tuple(dict.fromkeys(found))


def on_gpu(kinds: tuple[LayerKind, ...], split: Split) -> tuple[LayerKind, ...]:
    """What one GPU holds of layers; `broken_rules` must have passed them."""
    return tuple(
        kind.model_copy(
            update={
                "attention": _attention_on_gpu(kind.attention, split.tensor),
                "feed_forward": _feed_forward_on_gpu(kind.feed_forward, split),
            }
        )
        for kind in kinds
    )


def parameters_on_gpu(architecture: Architecture, split: Split) -> Parameters:
    """Parameters that one GPU holds; vocabularies are padded."""
    head = architecture.prediction
    share = architecture.model_copy(
        update={
            "layer_kinds": on_gpu(architecture.layer_kinds, split),
            "vocabulary": ceil(architecture.vocabulary / split.tensor),
            "prediction": head
            and head.model_copy(update={"layer_kinds": on_gpu(head.layer_kinds, split)}),
        }
    )
    counted = count_parameters(share)
    return replace(
        counted,
        # Every GPU chooses among all experts, not among its own.
        router=count_parameters(architecture).router,
        lookup_tables=ceil(counted.lookup_tables / split.tensor),
    )


def _of_gpus(split: Split) -> Iterator[Broken]:
    for option, size in (("tp", split.tensor), ("ep", split.expert)):
        if split.gpus % size:
            yield Broken(option, f"must divide the replica's {split.gpus} GPUs", str(size))


def _of_attention(attention: Attention, tensor: int) -> Iterator[Broken]:
    for field, name in _SPLIT[attention.kind].items():
        if (heads := getattr(attention, field)) % tensor:
            yield Broken("tp", f"must divide the {heads} {name}", str(tensor))
    for field, name in _COPIED.get(attention.kind, {}).items():
        groups = getattr(attention, field)
        if groups % tensor and tensor % groups:
            rule = f"must divide the {groups} {name}, or be a multiple of them to copy them"
            yield Broken("tp", rule, str(tensor))


def _of_feed_forward(feed_forward: FeedForward, split: Split) -> Iterator[Broken]:
    if isinstance(feed_forward, Dense) and feed_forward.width % split.tensor:
        rule = f"must divide the feed-forward width of {feed_forward.width}"
        yield Broken("tp", rule, str(split.tensor))
    if not isinstance(feed_forward, Moe):
        return
    experts, width = feed_forward.experts, feed_forward.expert_width
    if split.expert > experts:
        yield Broken("ep", f"must not be larger than the {experts} experts", str(split.expert))
    elif experts % split.expert:
        yield Broken("ep", f"must divide the {experts} experts", str(split.expert))
    if width % split.slices:
        option = "tp" if split.expert == 1 else "ep"
        rule = f"leaves {split.slices} GPUs to each expert, which must divide its width of {width}"
        yield Broken(option, rule, str(split.tensor if option == "tp" else split.expert))
    if feed_forward.shared_width % split.tensor:
        rule = f"must divide the shared experts' width of {feed_forward.shared_width}"
        yield Broken("tp", rule, str(split.tensor))


def _attention_on_gpu(attention: Attention, tensor: int) -> Attention:
    update = {field: getattr(attention, field) // tensor for field in _SPLIT[attention.kind]}
    for field in _COPIED.get(attention.kind, ()):
        update[field] = max(1, getattr(attention, field) // tensor)
    return attention.model_copy(update=update)


def _feed_forward_on_gpu(feed_forward: FeedForward, split: Split) -> FeedForward:
    if isinstance(feed_forward, Dense):
        return feed_forward.model_copy(update={"width": feed_forward.width // split.tensor})
    if not isinstance(feed_forward, Moe):
        return feed_forward
    return feed_forward.model_copy(
        update={
            "experts": feed_forward.experts // split.expert,
            "expert_width": feed_forward.expert_width // split.slices,
            "shared_width": feed_forward.shared_width // split.tensor,
        }
    )
