"""What four-bit checkpoints keep in sixteen bits."""

from typing import Final

from capplan.records.caveat import Caveat

KEPT: Final = Caveat(
    about="weights",
    text=(
        "Four-bit checkpoints are taken to keep 16 bits for what makes queries and latents, for "
        "attention that chooses what it reads and for linear attention, as ModelOpt's exclude."
    ),
)


def kept(weights: str) -> str:
    """Precision of such matrices where the others have this one."""
    return "bf16" if weights == "nvfp4" else weights


def kept_caveats(weights: str) -> tuple[Caveat, ...]:
    """What to say of it."""
    return () if kept(weights) == weights else (KEPT,)
