"""How much of a model, and which steps, one device's memory can hold."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from capplan.errors import MeasureError
from capplan.physics.cache import kv_bytes_per_token
from capplan.physics.parameters import count_parameters
from capplan.profiler import measurable
from capplan.profiler.grid import Work
from capplan.records.architecture import Architecture, Dense, Moe

USABLE: Final = 0.9
"""Part of the free memory that a sweep uses."""
BF16_BYTES: Final = 2
WEIGHTS: Final = 0.7
"""Part of the usable memory that weights may take where their number is chosen here: cells whose
cache does not fit into the rest are left out."""


@dataclass(frozen=True)
class Room:
    """Memory for a sweep."""

    usable_bytes: float
    bytes_per_value: int

    def weights_bytes(self, architecture: Architecture) -> float:
        """Size of a model's weights. [bytes]."""
        return float(count_parameters(architecture).total * self.bytes_per_value)

    def needed_bytes(self, architecture: Architecture, work: Work) -> float:
        """Weights, cache and intermediate results of a step. [bytes].

        Intermediate results are the widest moments of a layer and of the head, with 32-bit copies
        where softmax works.
        """
        kv = kv_bytes_per_token(architecture, self.bytes_per_value) * work.cache_tokens
        width = max(_widest(architecture), 8 * architecture.hidden_size)
        inner = work.tokens * width * 3 * self.bytes_per_value
        logits = work.head_rows * architecture.vocabulary * (self.bytes_per_value + 4)
        return self.weights_bytes(architecture) + kv + max(inner, logits)


def sample(
    architecture: Architecture, room: Room, layers: int | None, most: int | None = None
) -> Architecture:
    """The part of a model that will be measured.

    Args:
        architecture: The whole model.
        room: Memory of the device.
        layers: Layers of each kind, at most what the model has; None for as many as fit.
        most: Upper bound of layers of a kind where `layers` is None.

    Returns:
        The same model with fewer layers of each kind, at least one.

    Raises:
        MeasureError: If the weights do not fit, or the model has layers that cannot be measured.
    """
    measurable.check(architecture)
    full = [kind.layers for kind in architecture.layer_kinds]
    if layers is not None:
        chosen = _cut(architecture, [min(layers, count) for count in full])
        _must_fit(chosen, room, room.usable_bytes)
        return chosen
    target = [min(most or count, count) for count in full]
    counts = [1 for _ in full]
    _must_fit(_cut(architecture, counts), room, room.usable_bytes)
    limit = room.usable_bytes * WEIGHTS
    while counts != target:
        grown = _grown(counts, target)
        if room.weights_bytes(_cut(architecture, grown)) > limit:
            break
        counts = grown
    return _cut(architecture, counts)


def fitting(architecture: Architecture, room: Room, works: Iterable[Work]) -> tuple[Work, ...]:
    """The steps that memory can hold; those left out have the largest caches or batches.

    Raises:
        MeasureError: If no step of one of the tables fits.
    """
    works = tuple(works)
    kept = tuple(w for w in works if room.needed_bytes(architecture, w) <= room.usable_bytes)
    for table in ("steps", "mixed", "prefill"):
        if not any(work.table == table for work in kept):
            least = min(room.needed_bytes(architecture, w) for w in works if w.table == table)
            raise MeasureError(
                f"memory for the smallest cell of {table} is missing: it needs {least:.3g} bytes, "
                f"{room.usable_bytes:.3g} are usable\n"
                "    Choose fewer --layers, or smaller --batches and --contexts."
            )
    return kept


def _cut(architecture: Architecture, counts: list[int]) -> Architecture:
    kinds = zip(architecture.layer_kinds, counts, strict=True)
    cut = tuple(kind.model_copy(update={"layers": count}) for kind, count in kinds)
    return architecture.model_copy(update={"layer_kinds": cut})


def _grown(counts: list[int], target: list[int]) -> list[int]:
    """One more layer of the kind that is furthest behind."""
    ratios = [count / goal for count, goal in zip(counts, target, strict=True)]
    behind = ratios.index(min(ratios))
    return [count + (place == behind) for place, count in enumerate(counts)]


def _must_fit(architecture: Architecture, room: Room, limit: float) -> None:
    needed = room.weights_bytes(architecture)
    if needed > limit:
        counts = [kind.layers for kind in architecture.layer_kinds]
        layers = " + ".join(map(str, counts))
        noun = "layer" if counts == [1] else "layers"
        raise MeasureError(
            f"the weights of {layers} {noun} of {architecture.name} take {needed:.4g} bytes, "
            f"{limit:.4g} are usable on this device\n"
            f"    Choose {_remedies(architecture, room, limit)}a device with more memory."
        )


def _remedies(architecture: Architecture, room: Room, limit: float) -> str:
    """What would help beside a larger device, each with an `or`."""
    ones = _cut(architecture, [1 for _ in architecture.layer_kinds])
    narrow = replace(room, bytes_per_value=min(room.bytes_per_value, BF16_BYTES))
    fewer = ones != architecture and room.weights_bytes(ones) <= limit
    narrower = narrow != room and narrow.weights_bytes(architecture) <= limit
    return ("fewer --layers or " if fewer else "") + ("--dtype bf16 or " if narrower else "")


def _widest(architecture: Architecture) -> int:
    """Values a token holds at once in the widest feed-forward layer."""
    widths = []
    for kind in architecture.layer_kinds:
        shape = kind.feed_forward
        if isinstance(shape, Moe):
            inner = architecture.hidden_size + 2 * shape.expert_width
            widths.append(shape.experts_per_token * inner + 2 * shape.shared_width)
        elif isinstance(shape, Dense):
            widths.append(2 * shape.width)
    return max(widths)
