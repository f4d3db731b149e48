"""A drafter beside the model, as far as memory is concerned."""

from dataclasses import dataclass
from math import ceil

from capplan.physics.cache import draft_kv_bytes_per_token, held_bytes, kv_bytes_per_token
from capplan.physics.parameters import count_head
from capplan.physics.sharding import WHOLE, Split, broken_rules, on_gpu, parameters_on_gpu
from capplan.physics.stored_bytes import stored_bytes
from capplan.records.architecture import Architecture, DraftHead, LayerKind, Moe
from capplan.records.drafter_model import DrafterModel
from capplan.records.stored import Stored


@dataclass(frozen=True)
class DraftModel:
    """A head on a model's hidden states, or a small model of its own."""

    name: str
    hidden_size: int
    streams: int
    stored: Stored
    head: DraftHead | None = None
    model: Architecture | None = None

    @property
    def kinds(self) -> tuple[LayerKind, ...]:
        """Its layers, once."""
        if self.head is not None:
            return self.head.layer_kinds
        return () if self.model is None else self.model.layer_kinds

    def parameters(self, split: Split = WHOLE) -> int:
        """Parameters on one GPU."""
        if self.model is not None:
            return parameters_on_gpu(self.model, split).total
        assert self.head is not None
        share = self.head.model_copy(
            update={
                "layer_kinds": on_gpu(self.head.layer_kinds, split),
                "embedding_rows": ceil(self.head.embedding_rows / split.tensor),
                "head_rows": ceil(self.head.head_rows / split.tensor),
            }
        )
        return count_head(share, self.hidden_size, self.streams)

    def weights_bytes(self, split: Split = WHOLE) -> float:
        """Size on one GPU [bytes]."""
        if self.model is None:
            return self.parameters(split) * self.stored.prediction / 8
        sizes = stored_bytes(parameters_on_gpu(self.model, split), self.stored)
        return sum(sizes.values()) - sizes["prediction"]

    def held_bytes(
        self, context_tokens: float, bytes_per_value: float, draft_tokens: int, split: Split = WHOLE
    ) -> float:
        """What one GPU keeps of a sequence for it [bytes/sequence]."""
        copies = 1 if self.head is None else self.head.copies
        shares = on_gpu(self.kinds, split)
        return copies * held_bytes(shares, context_tokens, bytes_per_value, draft_tokens)

    def kv_bytes_per_token(self, bytes_per_value: float) -> float:
        """Growth of its own cache with the context [bytes/token]."""
        if self.head is not None:
            return draft_kv_bytes_per_token(self.head, bytes_per_value)
        assert self.model is not None
        return kv_bytes_per_token(self.model, bytes_per_value)

    def split(self, split: Split) -> Split:
        """As the model is split, where that can be; else whole on every GPU."""
        sparse = any(isinstance(kind.feed_forward, Moe) for kind in self.kinds)
        wanted = split if sparse else Split(split.gpus, split.tensor)
        return WHOLE if broken_rules(self.kinds, wanted) else wanted


def built_in(architecture: Architecture, stored: Stored) -> DraftModel | None:
    """The head for multi-token prediction that comes with a model; None where there is none."""
    if architecture.prediction is None:
        return None
    return DraftModel(
        name="mtp",
        hidden_size=architecture.hidden_size,
        streams=architecture.residual_streams,
        stored=stored,
        head=architecture.prediction,
    )


def of_head(drafter: DrafterModel) -> DraftModel:
    """A head that was trained apart."""
    return DraftModel(
        name=drafter.name,
        hidden_size=drafter.hidden_size,
        streams=1,
        stored=Stored(scheme=drafter.head.kind, prediction=drafter.weight_bits),
        head=drafter.head,
    )


def of_model(architecture: Architecture) -> DraftModel:
    """A small model, as its checkpoint is stored."""
    return DraftModel(
        name=architecture.name,
        hidden_size=architecture.hidden_size,
        streams=architecture.residual_streams,
        stored=architecture.stored or Stored(scheme="16 bits"),
        model=architecture,
    )
