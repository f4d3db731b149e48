"""What deployment is composed."""

from dataclasses import dataclass

from capplan.physics.experts import Routing
from capplan.physics.sharding import Split
from capplan.records.architecture import Architecture


@dataclass(frozen=True)
class Asked:
    """A model on GPUs of one kind under one engine."""

    model: Architecture
    gpu: str
    """As capplan writes hardware: h200-sxm."""
    split: Split
    engine: str
    """`vllm`, `sglang` or `trtllm`."""
    weights: str
    """Precision of the layers' matrices: bf16, fp8, fp8_block, nvfp4, int4, mxfp4."""
    experts: str | None
    """The same of the routed experts; None for that of the matrices."""
    cache: str
    """Precision of cached keys and values: bf16 or fp8."""
    routing: Routing | None = None
    """How tokens choose experts; None for an assumption, which a caveat then says."""
