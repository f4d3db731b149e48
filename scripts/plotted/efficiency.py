"""Target efficiency of the shipped profiles, at batches and a context that they tabulate."""

from capplan.physics.drafting import target_efficiency
from capplan.planner.surfaces import Surfaces
from plotted import Tree, digits
from plotted.replicas import profile

BATCHES = (1, 4, 16, 64, 256)
CONTEXT_TOKENS = 4096
LENGTHS = (1, 3)


def efficiency(model: str) -> Tree:
    """T(B, 1) / T(B, γ + 1) by draft length and batch."""
    surfaces = Surfaces.of(profile(model), None)
    decode_s = surfaces.step_s(BATCHES, CONTEXT_TOKENS, 1)
    by_length = {
        str(length): [
            digits(float(value))
            for value in target_efficiency(
                decode_s, surfaces.step_s(BATCHES, CONTEXT_TOKENS, length + 1)
            )
        ]
        for length in LENGTHS
    }
    return {"model": model, "batch": list(BATCHES), "by_draft_length": by_length}
