"""Rounds of speculation that others measured and published."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedRound:
    """One point; None is what its source does not say."""

    name: str
    place: str
    """`file:line` that it was read from."""
    source: str | None
    """Its address."""
    model: str | None
    sparse: bool
    """Whether the source says that the model has routed experts."""
    gpu: str | None
    """As sold: A800, H100; None where nothing that we know is named."""
    gpus: int
    engine: str | None
    """`vllm`, `sglang` or `trtllm`, or another's name in lower case."""
    weights: str | None
    """Precision that was said: fp4, fp8, int4, bf16."""
    batches: tuple[int, ...]
    """Sequences that decode together; several where the best of them was published."""
    passes: int | None
    """Runs of the drafter one after the other in a round."""
    beams: int
    """Drafts that each run goes on from: 1 in a chain, more in a tree."""
    query_tokens: int | None
    """Tokens of a sequence that one verification takes."""
    tokens_per_round: float | None
    """Bonus token included."""
    drafter: str | None
    """`eagle3`, `eagle`, `mtp`, `ngram`, or a model's name."""
    context_tokens: int | None
    plain_s: float | None
    """Time of a plain decode step at the batch, where that was published. [s]"""
    speed_up: float | None
    cycle_ratio: float | None
    """Time of a round over a plain decode step at the same batch."""

    @property
    def tells(self) -> bool:
        """Whether there is anything to compare a prediction with."""
        return self.speed_up is not None or self.cycle_ratio is not None
