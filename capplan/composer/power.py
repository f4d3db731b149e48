"""Watts of a GPU by tokens in the step, assumed: what others saw of serving, as part of TDP."""

from typing import Final

import numpy as np

from capplan.physics.surface import Array
from capplan.records.caveat import Caveat, Source

TOKENS: Final = (8, 32, 128, 512)
"""Where the medians of up to 16, of 64, of 256 and of more sequences are put."""
PARTS: Final = {
    ("hopper", "moe"): (0.63, 0.67, 0.70, 0.79),
    ("hopper", "dense"): (0.65, 0.74, 0.84, 0.90),
    ("blackwell", "moe"): (0.65, 0.75, 0.82, 0.70),
    ("blackwell", "dense"): (0.75, 0.73, 0.96, 0.94),
}
PREFILL: Final = 0.90
SOURCE: Final = Source(
    what="power, assumed: medians of serving over TDP by batch on H100 and B200",
    where="ML.ENERGY leaderboard, https://github.com/ml-energy/leaderboard, public/data",
)


def family(gpu: str) -> str:
    """Whose medians stand for a GPU: B200's for Blackwell, H100's for every other."""
    return "blackwell" if gpu.startswith(("b200", "b300", "gb200", "gb300")) else "hopper"


def part_of_tdp(gpu: str, kind: str, tokens: Array) -> Array:
    """Part of TDP, straight in the logarithm of the tokens, level outside. [shape of tokens].

    Args:
        gpu: Its name.
        kind: `moe` or `dense`.
        tokens: In the step.
    """
    parts = PARTS[family(gpu), kind]
    return np.asarray(np.interp(np.log2(tokens), np.log2(TOKENS), parts))


def caveat(gpu: str, tdp_w: float) -> Caveat:
    """What the watts of a profile rest on."""
    seen = {"hopper": "H100", "blackwell": "B200"}[family(gpu)]
    return Caveat(
        about="power",
        text=f"Assumed: medians that ML.ENERGY saw on {seen} by batch (range 0.3 to 1.0 of TDP), "
        f"on {tdp_w:.0f} W, by tokens in the step; prefill {PREFILL:.2f} (0.75 to 1.0). No "
        "measurement of power under speculation went into it.",
    )
