"""What `capplan compose` says of a deployment beside its profile."""

from capplan.records.base import Record
from capplan.records.profile import Profile
from capplan.units import Bytes, BytesPerToken, Count, Fraction, PositiveCount, Seconds, SmallCount


class ComposedStep(Record):
    """One step, taken apart."""

    batch: SmallCount
    context_tokens: Count
    query_tokens: PositiveCount
    step_s: Seconds
    low_s: Seconds
    high_s: Seconds
    parts_s: dict[str, Seconds]
    """By part, which sum to the step."""


class SequencesHeld(Record):
    """How many sequences of one length a replica's cache holds, no drafter loaded."""

    context_tokens: PositiveCount
    sequences: Count


class Composition(Record):
    """A composed deployment."""

    capplan: str
    """Version of the program."""
    gpu_memory_bytes: Bytes
    usable_bytes: Bytes
    """Of one GPU, for weights, drafter and cache."""
    weights_on_gpu_bytes: Bytes
    kv_bytes_per_token: BytesPerToken
    """Over the GPUs that share a sequence."""
    held: tuple[SequencesHeld, ...]
    steps: tuple[ComposedStep, ...]
    """Decoding and verification of some batches, at one context."""
    part_error: dict[str, Fraction]
    """Relative error of reading tables between their rows, by part."""
    profile: Profile
