"""How long the step-time model takes: T over 100 000 cells of batch, query tokens and context.

Prints seconds of the fastest of several runs beside the bar, and as a ratio to one multiply-add of
numpy over as many cells, which another machine or a busy core changes less. Needs the extra
`silicon`.
"""

import json
import math
import time
from collections.abc import Callable

import numpy as np

from capplan.composer import Asked, Composed, composed
from capplan.files.catalogue import find
from capplan.files.reader import read
from capplan.importers.silicon import silicon
from capplan.physics.load import Load, decode_load
from capplan.physics.sharding import Split
from capplan.records.architecture import Architecture

CELLS_BAR_S = 0.1
DEPLOYMENTS = {
    "llama-3.1-70b": ("vllm", Split(4, 4), "fp8"),
    "qwen3-235b-a22b": ("vllm", Split(8, 8, 8), "fp8_block"),
    "deepseek-v3": ("trtllm", Split(8, 8), "fp8_block"),
    "qwen3.5-397b-a17b": ("sglang", Split(8, 8), "fp8_block"),
}


def grid() -> Load:
    """100 batches × 10 query tokens × 100 contexts."""
    axes = np.arange(1, 101), np.arange(1, 11), np.linspace(1, 30000, 100)
    batch, query, context = (axis.ravel() for axis in np.meshgrid(*axes))
    return decode_load(batch, context, query)


def deployed(name: str) -> Composed:
    """The deployment of a model on H200."""
    engine, split, weights = DEPLOYMENTS[name]
    model = read(find("models", name), Architecture)
    asked = Asked(model, "h200-sxm", split, engine, weights, experts=None, cache="bf16")
    return composed(asked, silicon("h200-sxm", engine))


def fastest_s(run: Callable[[], object], runs: int = 7) -> float:
    """Time of the fastest run."""
    best = math.inf
    for _ in range(runs):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Prints one JSON object."""
    load = grid()
    plain_s = fastest_s(lambda: load.batch * load.context_tokens + load.query_tokens)
    found = {}
    for name in DEPLOYMENTS:
        start = time.perf_counter()
        composition = deployed(name)
        put_together_s = time.perf_counter() - start
        seconds = fastest_s(lambda one=composition: one.step_s(load))  # type: ignore[misc]
        found[name] = {
            "composed_in_s": round(put_together_s, 3),
            "cells": load.batch.size,
            "seconds": round(seconds, 4),
            "bar_s": CELLS_BAR_S,
            "bar_kept": seconds <= CELLS_BAR_S,
            "ratio_to_numpy": round(seconds / plain_s),
        }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
