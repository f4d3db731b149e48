"""What others measured of servers under a steady load."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServedRow:
    """One run of a closed loop; None is what its source leaves blank."""

    name: str
    place: str
    """`file:line` that it was read from."""
    engine: str
    engine_version: str | None
    checkpoint: str
    """As its engine was told: Qwen/Qwen3-235B-A22B-FP8."""
    gpu: str
    """As capplan writes hardware: h200-sxm."""
    precision: str | None
    """fp4, fp8 or bf16."""
    matrices: str | None
    """Precision of the matrices: fp8, fp8_block, nvfp4."""
    experts: str | None
    """The same of routed experts."""
    input_tokens: int
    output_tokens: int
    batch_size: int
    """Requests in flight, of each group of GPUs that has requests of its own."""
    tensor: int
    pipeline: int
    attention_copies: int | None
    """Groups of GPUs with requests of their own."""
    expert_slices: int | None
    """GPUs that share an expert."""
    expert_groups: int | None
    """Groups of GPUs that experts are dealt out to."""
    tpot_s: float
    """Mean over requests of the time from first to last token, by tokens after the first."""
