"""Step and drafting times of a deployment, for rounds that were published."""

from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

import numpy as np

from capplan.backtester.rounds import Overlap
from capplan.composer.band import alike_routing, experts_of
from capplan.composer.composed import Composed
from capplan.composer.drafting import ROUND_S, DraftTime
from capplan.composer.experts import assumed_routing
from capplan.composer.reading import times_s
from capplan.physics.estimated_step import EstimatedStep
from capplan.physics.experts import Routing, independent_routing
from capplan.physics.load import Load, decode_load
from capplan.physics.surface import Array
from capplan.records.architecture import Architecture

ALIKE: Final = 0.4
"""Overlap of tokens of one sequence at most: 0.38 of Cohere's neighbours."""


@dataclass(frozen=True)
class ComposedSteps:
    """Steps of a deployment whose operators were all timed."""

    target: dict[Overlap, Composed]
    draft: DraftTime | None
    origin: Literal["composed"] = "composed"

    @property
    def sparse(self) -> bool:
        """Whether the model has routed experts."""
        return experts_of(self.target["assumed"].asked.model) is not None

    def step_s(self, load: Load, overlap: Overlap) -> Array:
        """Time of a step [s]."""
        return times_s(self.target[overlap], load)

    def draft_s(self, load: Load, passes: int, beams: int) -> Array:
        """Kernel time of drafting [s]; beams of a tree run side by side."""
        if self.draft is None:
            return np.zeros(load.batch.shape)
        drafts = np.full(load.batch.shape, float(passes))
        return self.draft.at(load.batch * beams, drafts) - ROUND_S


@dataclass(frozen=True)
class EstimatedSteps:
    """Steps of a deployment by rooflines."""

    target: EstimatedStep
    draft: EstimatedStep | None
    origin: Literal["estimated"] = "estimated"

    @property
    def sparse(self) -> bool:
        """Whether the model has routed experts."""
        return experts_of(self.target.model) is not None

    def step_s(self, load: Load, overlap: Overlap) -> Array:
        """Time of a step [s]."""
        return self.target.step_s(load, routings(self.target.model)[overlap])

    def draft_s(self, load: Load, passes: int, beams: int) -> Array:
        """Kernel time of drafting [s]: each pass is a step of the drafter."""
        if self.draft is None:
            return np.zeros(load.batch.shape)
        step = decode_load(load.batch * beams, load.context_tokens, 1)
        return passes * self.draft.step_s(step, routings(self.draft.model)["assumed"])


def routings(model: Architecture) -> dict[Overlap, Routing | None]:
    """How tokens may choose experts; all the same in a dense model."""
    shape = experts_of(model)
    if shape is None:
        return dict.fromkeys(get_args(Overlap))
    alike = alike_routing(shape)
    return {
        "assumed": assumed_routing(shape),
        "independent": independent_routing(shape.experts, shape.experts_per_token),
        "alike": replace(alike, within=max(ALIKE, alike.across)),
    }
