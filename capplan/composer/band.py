"""How far a composed step may lie off a served one."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from capplan.composer.asked import Asked
from capplan.composer.compose import composed
from capplan.composer.composed import Composed
from capplan.composer.reading import parts_s, times_s, waiting_s
from capplan.physics.experts import independent_routing
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.surface import Array
from capplan.records.architecture import Architecture, Moe

ENDS: Final = {"dense": (0.15, 0.40), "moe": (0.15, 0.50)}
"""Part below and above a sum of kernel times that served ones were seen to lie within: 85 % of
dense and 87 % of sparse rows of NVIDIA's served data, time a token of plain decoding. Lopsided,
because gaps between kernels and skewed routing are missing."""


@dataclass(frozen=True)
class Band:
    """A deployment's step times with their ends."""

    middle: Composed
    independent: Composed | None
    """The same with all tokens choosing experts independently; None without experts."""

    def at(self, load: Load) -> tuple[Array, Array, Array]:
        """Time, its lower and its upper end [s], shape of the load; NaN outside the tables."""
        parts = parts_s(self.middle, load)
        time_s = np.asarray(sum(parts.values()))
        reading = self._reading(parts) / time_s
        most = time_s if self.independent is None else times_s(self.independent, load)
        excess = np.maximum(0, most / time_s - 1)
        below, above = ENDS[self.kind]
        low = (time_s - waiting_s(parts)) * (1 - np.hypot(below, reading))
        return time_s, low, time_s * (1 + np.hypot(np.hypot(above, reading), excess))

    @property
    def kind(self) -> str:
        """`moe` or `dense`."""
        return "dense" if self.independent is None else "moe"

    @property
    def note(self) -> str:
        """What the ends mean."""
        below, above = ENDS[self.kind]
        joined = "the error of reading tables between their rows"
        if self.independent is not None:
            joined += ", for high_s the excess of tokens that all choose experts independently"
        return (
            f"low_s is {below:.0%} below the sum of kernel times and leaves out what a step with a "
            f"prefill chunk waits for its host, high_s {above:.0%} above it: within such ends lay "
            f"most served times of plain decoding. Joined in quadrature: {joined}."
        )

    def _reading(self, parts: dict[str, Array]) -> Array:
        """Time by which reading tables between their rows may be off [s]."""
        errors = {part: error for part, error in self.middle.term_error.items() if error}
        squares = (np.square(error * parts[part]) for part, error in errors.items())
        return np.asarray(np.sqrt(sum(squares, np.zeros(()))))


def band(asked: Asked, tables: Silicon) -> Band:
    """Composes a deployment with its ends.

    Raises:
        InputError: As `composed`.
    """
    middle = composed(asked, tables)
    shape = experts_of(asked.model)
    if shape is None:
        return Band(middle, None)
    routing = independent_routing(shape.experts, shape.experts_per_token)
    return Band(middle, composed(replace(asked, routing=routing), tables))


def experts_of(model: Architecture) -> Moe | None:
    """The model's first sparse layers; None in a dense model."""
    shapes = [kind.feed_forward for kind in model.layer_kinds if isinstance(kind.feed_forward, Moe)]
    return shapes[0] if shapes else None
