"""How long the fit of a profile's steps takes, its errors at the axes' ends included.

Prints seconds of the fastest of several runs beside the bar, and as a ratio to one multiply-add of
numpy over 100 000 numbers, which another machine or a busy core changes less.
"""

import json
import math
import time
from collections.abc import Callable

import numpy as np

from capplan.files.catalogue import find
from capplan.files.reader import read
from capplan.physics.fitted_steps import fitted_steps
from capplan.records.profile import Profile

FIT_BAR_S = 0.5
PROFILES = ("h200-sxm/kimi-k2.5-int4-tp8", "h200-sxm/llama-3.1-70b-fp8-tp4")


def fastest_s(run: Callable[[], object], runs: int = 5) -> float:
    """Time of the fastest run."""
    best = math.inf
    for _ in range(runs):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Prints one JSON object."""
    numbers = np.random.default_rng(0).random(100_000)
    plain_s = fastest_s(lambda: numbers * numbers + numbers, runs=50)
    found = {}
    for name in PROFILES:
        cells = read(find("profiles", name), Profile).steps.rows
        fit_s = fastest_s(lambda cells=cells: fitted_steps(cells))
        found[name] = {
            "steps": len(cells),
            "fit_s": round(fit_s, 4),
            "over_multiply_add": round(fit_s / plain_s, 1),
        }
    print(json.dumps({"bar_s": FIT_BAR_S, "fits": found}, indent=2))


if __name__ == "__main__":
    main()
