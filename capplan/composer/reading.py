"""Step times of any load, NaN where a table ends instead of an error."""

import numpy as np

from capplan.composer.composed import Composed
from capplan.physics.load import Load
from capplan.physics.surface import Array


def times_s(composed: Composed, load: Load) -> Array:
    """Step times [s], shape of the load; NaN outside the tables."""
    try:
        return composed.step_s(load)
    except ValueError:
        cells = zip(
            *(np.atleast_1d(part) for part in (load.batch, load.query_tokens, load.context_tokens,
                                               load.prefill_tokens, load.cached_tokens)),
            strict=True,
        )  # fmt: skip
        return np.array([_one(composed, Load(*map(np.asarray, cell))) for cell in cells])


def _one(composed: Composed, load: Load) -> float:
    try:
        return float(composed.step_s(load))
    except ValueError:
        return float("nan")
