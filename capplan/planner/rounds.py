"""Rounds of a replica at every whole batch, for a simulation."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from capplan.physics.surface import Array
from capplan.planner.capacity import Curve

_NEAR = 0.1
"""Part of the sequences to either side over which a round's slope is taken."""
_NOBODY = 1e-6
"""As few as that draft, where nobody would leave out the drafting itself."""


@dataclass(frozen=True)
class Rounds:
    """Rounds of the variants that run, V, up to N sequences, at C contexts.

    Where some sequences draft and others do not, a round is modelled: where as many draft as do on
    average it is the balance's, and from there it changes straight with each that drafts.

    Attributes:
        context_tokens: Those at which every round was measured. [C]
        step_s: Without prefill; nought at batch 0. Where some go without drafts, as if all
            drafted. [V, N + 1, C]
        draft_s: Drafting within it, by the sequences that draft. [V, N + 1]
        saved_s: By how much each that goes without drafts shortens it. [V, N + 1]
    """

    context_tokens: Array
    step_s: Array
    draft_s: Array
    saved_s: Array

    @classmethod
    def of(cls, curve: Curve, mix: int, largest: int) -> Self:
        """Tabulates a replica under its policy.

        Args:
            curve: The replica.
            mix: Of the classes, some of which may go without drafts.
            largest: Batch, N.
        """
        replica, running = curve.replica, variants_that_run(curve)
        context = _known_contexts(curve, largest, replica.query_tokens[mix, running])
        step = np.zeros((len(running), largest + 1, len(context)))
        draft, saved = np.zeros((2, len(running), largest + 1))
        batch = np.arange(1.0, largest + 1)
        for place, variant in enumerate(running):
            without = batch * (1 - replica.drafting[mix, variant])
            saved[place, 1:] = _saved_s(curve, mix, variant, batch)
            mean_s = _round_s(
                curve, variant, batch[:, None], context, replica.drafting[mix, variant]
            )
            step[place, 1:] = mean_s + (without * saved[place, 1:])[:, None]
            draft[place, 1:] = replica.surfaces.draft_s(
                batch, replica.variants.draft_tokens[variant]
            )
        return cls(context, step, draft, saved)


def variants_that_run(curve: Curve) -> list[int]:
    """The replica's variants that run at some batch, in the order of their draft lengths."""
    variants = curve.replica.variants
    return [variants.index(length) if curve.loaded else 0 for length in curve.draft_lengths]


def _known_contexts(curve: Curve, largest: int, query_tokens: Array) -> Array:
    """Contexts at which every step that runs was measured, at the largest batch that it runs at."""
    step = curve.replica.surfaces.step
    axis = step.axes[1]
    last = np.array([_last_batch(curve, length, largest) for length in curve.draft_lengths])
    times = step.at(step.clamped(0, last), axis[:, None], query_tokens)
    return axis[np.isfinite(times).all(axis=1)]


def _last_batch(curve: Curve, draft_tokens: int, largest: int) -> int:
    """The largest batch at which so many are drafted."""
    ends = [one.to_batch for one in curve.ranges if one.draft_tokens == draft_tokens]
    return min(max(ends), largest)


def _round_s(curve: Curve, variant: int, batch: Array, context_tokens: Array, part: float) -> Array:
    """A round in which a part of the sequences drafts."""
    replica = curve.replica
    overhead = 0.0
    if curve.loaded and replica.drafter is not None:
        overhead = replica.profile.drafters[replica.drafter].loaded_idle_overhead
    draft_tokens = replica.variants.draft_tokens[variant]
    return replica.surfaces.round_s(batch, context_tokens, draft_tokens, part, overhead)


def _saved_s(curve: Curve, mix: int, variant: int, batch: Array) -> Array:
    """By how much a round is shorter for each sequence that goes without drafts. [N]."""
    replica = curve.replica
    part = float(replica.drafting[mix, variant])
    if not _NOBODY < part < 1:
        return np.zeros(len(batch))
    context = replica.context_tokens[mix, variant]
    parts = max(part - _NEAR, _NOBODY), part, min(part + _NEAR, 1.0)
    fewer_s, mean_s, more_s = (_round_s(curve, variant, batch, context, of) for of in parts)
    # More drafts than on average may not have been measured at the largest batches.
    below = (mean_s - fewer_s) / (part - parts[0])
    across = (more_s - fewer_s) / (parts[2] - parts[0])
    slope = np.where(np.isnan(across), below, across)
    # Where times bend up, the straight line back to nobody must not end below nought.
    return np.minimum(slope, mean_s / part) / batch
