"""Times that no step can undercut: bytes it must read over what the memory can deliver."""

from typing import Final

from capplan.physics.parameters import count_parameters
from capplan.records.architecture import Architecture

_CACHES_BYTES: Final = 256e6
"""More than any GPU's second-level cache: smaller weights may never be read from memory."""


def least_s(
    architecture: Architecture, bytes_per_value: int, bandwidth_bytes_per_s: float | None
) -> tuple[float, ...]:
    """Least that each coefficient of a step fit can be.

    Args:
        architecture: The model.
        bytes_per_value: Of weights. [bytes]
        bandwidth_bytes_per_s: The memory's label; None where it is not known.

    Returns:
        In the order of `step_fit.TERMS`: decoding and verification read all but the experts, an
        expert is read in every sparse layer. Noughts where nothing is known. [terms, s]
    """
    counts = count_parameters(architecture)
    sparse = (kind.feed_forward for kind in architecture.layer_kinds)
    experts = max((one.experts for one in sparse if one.kind == "moe"), default=1)
    always = counts.active_without_embedding - counts.routed_experts_active
    if architecture.tied_embeddings:
        always += counts.embedding
    if bandwidth_bytes_per_s is None or always * bytes_per_value < _CACHES_BYTES:
        return (0.0,) * 7
    once_s = always * bytes_per_value / bandwidth_bytes_per_s
    expert_s = counts.routed_experts / experts * bytes_per_value / bandwidth_bytes_per_s
    return once_s, once_s, expert_s, 0.0, 0.0, 0.0, 0.0
