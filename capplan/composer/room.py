"""What memory is left for a cache beside the weights."""

from dataclasses import dataclass
from typing import Final

from capplan.physics import memory
from capplan.physics.cache import kv_bytes_per_token, state_bytes_per_sequence
from capplan.physics.sharding import Split, on_gpu, parameters_on_gpu
from capplan.physics.stored_bytes import stored_bytes
from capplan.records.architecture import Architecture
from capplan.records.stored import Stored

CACHE_BYTES: Final = {"bf16": 2.0, "fp8": 1.0}
"""Of one cached number."""


@dataclass(frozen=True)
class Room:
    """Memory of a replica."""

    weights_bytes: float
    """On one GPU."""
    usable_bytes: float
    """Of one GPU, for weights, drafter and cache."""
    kv_bytes_per_token: float
    """Summed over the GPUs that share a sequence."""
    state_bytes_per_sequence: float
    """The same."""
    capacity_tokens: float
    """Of the replica, all copies together."""

    @property
    def weights_fit(self) -> bool:
        """Whether a GPU holds its share at all."""
        return self.weights_bytes < self.usable_bytes


def room(
    architecture: Architecture, stored: Stored, split: Split, cache: str, gpu_bytes: float
) -> Room:
    """Memory of a layout.

    Args:
        architecture: The model.
        stored: Widths of its weights.
        split: How GPUs share it.
        cache: Precision of cached keys and values.
        gpu_bytes: Of one GPU, as its driver reports it.
    """
    sizes = stored_bytes(parameters_on_gpu(architecture, split), stored)
    weights = sum(size for part, size in sizes.items() if part != "prediction")
    share = architecture.model_copy(update={"layer_kinds": on_gpu(architecture.layer_kinds, split)})
    per_value = CACHE_BYTES[cache]
    token = kv_bytes_per_token(share, per_value)
    usable = memory.usable_bytes(gpu_bytes)
    return Room(
        weights_bytes=weights,
        usable_bytes=usable,
        kv_bytes_per_token=split.tensor * token,
        state_bytes_per_sequence=split.tensor * state_bytes_per_sequence(share, per_value),
        capacity_tokens=float(split.copies * (max(0.0, usable - weights) // token)),
    )
