"""Step times of any load, NaN where a table ends instead of an error."""

from dataclasses import fields

import numpy as np

from capplan.composer.compose import FIXED_S
from capplan.composer.composed import Composed
from capplan.physics.load import Load
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array


def times_s(composed: Composed, load: Load) -> Array:
    """Step times [s], shape of the load; NaN outside the tables."""
    return np.asarray(sum(parts_s(composed, load).values()))


def parts_s(composed: Composed, load: Load) -> dict[str, Array]:
    """The same by part [s]; NaN in all parts where one leaves its table."""
    try:
        return composed.parts_s(load)
    except ValueError:
        columns = (np.atleast_1d(getattr(load, field.name)) for field in fields(load))
        loads = (Load(*map(np.asarray, cell)) for cell in zip(*columns, strict=True))
        cells = [_one(composed, one) for one in loads]
        names = dict.fromkeys(term.part for term in composed.terms)
        return {name: np.array([cell.get(name, np.nan) for cell in cells]) for name in names}


def curve_s(curve: Curve, size: Array) -> Array:
    """A curve's times [s]; NaN outside its table."""
    inside = np.clip(size, curve.sizes[0], curve.sizes[-1])
    return np.where(inside == size, curve.at(inside), np.nan)


def waiting_s(parts: dict[str, Array]) -> Array:
    """What a step waits for its host beyond kernels and the fixed time of every step [s]."""
    return np.asarray(np.maximum(0.0, parts["fixed"] - FIXED_S))


def _one(composed: Composed, load: Load) -> dict[str, float]:
    try:
        return {part: float(time) for part, time in composed.parts_s(load).items()}
    except ValueError:
        return {}
