"""A model on GPUs, and how many sequences fit it."""

from dataclasses import dataclass, replace
from math import floor

from capplan.physics import memory
from capplan.physics.cache import held_bytes, kv_bytes_per_token
from capplan.physics.draft_model import DraftModel
from capplan.physics.experts import independent_routing
from capplan.physics.messages import messages
from capplan.physics.offload import fetching_s, missed_experts
from capplan.physics.parameters import expert_parameters
from capplan.physics.sharding import Split, broken_rules, on_gpu, parameters_on_gpu
from capplan.physics.stored_bytes import stored_bytes
from capplan.records.anatomy import Layout, Message, Share
from capplan.records.architecture import Architecture, LayerKind, Moe
from capplan.records.fleet import Gpu
from capplan.records.stored import Stored


@dataclass(frozen=True)
class Setup:
    """All that decides how many sequences fit."""

    architecture: Architecture
    stored: Stored
    """At the precision it is served in."""
    kv_bytes_per_value: float
    context_tokens: int
    gpu: Gpu
    split: Split
    drafter: DraftModel | None = None
    draft_tokens: int = 0
    host_share: float = 0.0
    """Part of the routed experts that lies in host memory."""

    @property
    def kinds(self) -> tuple[LayerKind, ...]:
        """One GPU's share of the layers."""
        return on_gpu(self.architecture.layer_kinds, self.split)

    def plain(self) -> "Setup":
        """The same with no drafter loaded."""
        return replace(self, drafter=None, draft_tokens=0)

    def weights_on_gpu(self) -> dict[str, float]:
        """Size of the model's weights on one GPU, by component [bytes]."""
        sizes = stored_bytes(parameters_on_gpu(self.architecture, self.split), self.stored)
        sizes["routed_experts"] *= 1 - self.host_share
        return {part: size for part, size in sizes.items() if part != "prediction"}

    def drafter_bytes(self) -> float:
        """Size of the drafter's weights on one GPU [bytes]."""
        if self.drafter is None:
            return 0.0
        return self.drafter.weights_bytes(self.drafter.split(self.split))

    def sequence_bytes(self) -> float:
        """What one GPU keeps of a sequence of its copy [bytes]."""
        own = held_bytes(
            self.kinds, self.context_tokens, self.kv_bytes_per_value, self.draft_tokens
        )
        if self.drafter is None:
            return own
        return own + self.drafter.held_bytes(
            self.context_tokens,
            self.kv_bytes_per_value,
            self.draft_tokens,
            self.drafter.split(self.split),
        )

    def weights_fit(self) -> bool:
        """Whether a GPU holds its share of the weights at all, no drafter loaded."""
        return sum(self.weights_on_gpu().values()) < memory.usable_bytes(self.gpu.memory_bytes)

    def waits_s(self, batch: int) -> float | None:
        """What a decoding step waits for experts in host memory, tokens choosing independently [s].

        None where none lie there, or where the fleet does not give the link.
        """
        link = self.gpu.host_bytes_per_s
        if not self.host_share or link is None:
            return None
        waits = 0.0
        for whole, own in zip(self.architecture.layer_kinds, self.kinds, strict=True):
            if isinstance(whole.feed_forward, Moe) and isinstance(own.feed_forward, Moe):
                moe = whole.feed_forward
                routing = independent_routing(moe.experts, moe.experts_per_token)
                missed = float(missed_experts(routing, self.host_share, batch, 1))
                size = expert_parameters(own.feed_forward, self.architecture.hidden_size)
                expert_bytes = size * self.stored.routed_experts / 8
                here = missed * own.feed_forward.experts / moe.experts
                waits += own.layers * float(fetching_s(here, expert_bytes, link))
        return waits

    def sequences(self) -> int:
        """Sequences of the context that fit all copies together.

        By the planner's rules: a sequence holds its context, a slot for every drafted token, and
        its state once more for each of them.
        """
        usable = memory.usable_bytes(self.gpu.memory_bytes)
        free = usable - sum(self.weights_on_gpu().values()) - self.drafter_bytes()
        if free <= 0:
            return 0
        one = self.sequence_bytes()
        return self.split.copies * floor(float(memory.batch_that_fits(free, one, 0.0)) + 1e-9)


def layout(setup: Setup) -> Layout:
    """What a GPU holds under a way to share the model, or why it cannot be shared so."""
    split = setup.split
    broken = broken_rules(setup.architecture.layer_kinds, split)
    return Layout(
        tp=split.tensor,
        ep=split.expert,
        copies=max(1, split.copies),
        refused=tuple(f"{one.option} {one.found} {one.rule}" for one in broken),
        share=None if broken else _share(setup),
    )


def _share(setup: Setup) -> Share:
    sizes, split = setup.weights_on_gpu(), setup.split
    plain, drafter = setup.plain(), setup.drafter
    experts = [
        kind.feed_forward.experts for kind in setup.kinds if isinstance(kind.feed_forward, Moe)
    ]
    share = setup.architecture.model_copy(update={"layer_kinds": setup.kinds})
    return Share(
        attention_bytes=sizes["attention"],
        experts_bytes=sizes["routed_experts"],
        weights_bytes=sum(sizes.values()),
        drafter_bytes=None if drafter is None else setup.drafter_bytes(),
        experts_per_gpu=max(experts, default=0),
        expert_slices=split.slices if experts else 1,
        kv_bytes_per_token=kv_bytes_per_token(share, setup.kv_bytes_per_value),
        sequence_bytes=plain.sequence_bytes(),
        sequences=plain.sequences(),
        sequences_with_drafter=None if drafter is None else setup.sequences(),
        messages=_messages(setup),
    )


def _messages(setup: Setup) -> tuple[Message, ...]:
    """Layers that say the same are one row."""
    rows: dict[tuple[str, int, float], int] = {}
    hidden = setup.architecture.hidden_size
    for kind in setup.architecture.layer_kinds:
        for sent in messages(kind, hidden, setup.split):
            key = (sent.pattern, sent.count, float(sent.bytes_per_token))
            rows[key] = rows.get(key, 0) + kind.layers
    return tuple(
        Message.model_validate(
            {"layers": layers, "pattern": pattern, "count": count, "bytes_per_token": size}
        )
        for (pattern, count, size), layers in rows.items()
    )
