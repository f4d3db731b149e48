"""Where the bytes of a checkpoint are."""

from typing import Final

from capplan.physics.parameters import Parameters
from capplan.records.stored import Stored

COMPONENTS: Final = (
    "embedding",
    "attention",
    "dense",
    "routed_experts",
    "shared_experts",
    "router",
    "norms",
    "head",
    "lookup_tables",
    "prediction",
)


def stored_bytes(parameters: Parameters, stored: Stored) -> dict[str, float]:
    """Size of a checkpoint's weights by component, at the widths it is stored in.

    Args:
        parameters: The counts.
        stored: Widths with their scales. [bit]

    Returns:
        Sizes; heads for multi-token prediction are among them. [bytes]
    """
    return {part: getattr(parameters, part) * getattr(stored, part) / 8 for part in COMPONENTS}
