"""A profile's tables as surfaces to read between."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics import drafting
from capplan.physics.surface import Array, Surface
from capplan.records.profile import Drafter, Profile


@dataclass(frozen=True)
class Surfaces:
    """Every time that a plan reads from a profile.

    Attributes:
        step: Target alone, over batch, context_tokens, query_tokens. [s]
        power: Mean watts of one GPU over the same; None where no step has them. [W]
        increment: What a prefill chunk adds to a step, over batch, context_tokens, query_tokens,
            prefill_tokens; nought without a chunk. [s]
        prefill: A chunk alone, over tokens, cached_tokens. [s]
        own: What it takes longer for the prompt's own cached_tokens, over the same. [s]
        prefill_power: Mean watts of one GPU over the same; None where no chunk has them. [W]
        draft: Drafting of a round, over batch, draft_tokens; None without a drafter. [s]
    """

    step: Surface
    power: Surface | None
    increment: Surface
    prefill: Surface
    own: Surface
    prefill_power: Surface | None
    draft: Surface | None

    @classmethod
    def of(cls, profile: Profile, drafter: Drafter | None) -> Self:
        """Reads the tables of a profile and of one of its drafters."""
        cells = profile.steps.rows
        places = [(cell.batch, cell.context_tokens, cell.query_tokens) for cell in cells]
        step = Surface.of_rows(places, [cell.step_s for cell in cells])
        chunks = profile.prefill.rows
        pieces = [(chunk.tokens, chunk.cached_tokens) for chunk in chunks]
        prefill = Surface.of_rows(pieces, [chunk.step_s for chunk in chunks])
        return cls(
            step=step,
            power=_power(places, [cell.power_w for cell in cells]),
            increment=_increment(profile, step),
            prefill=prefill,
            own=Surface(prefill.axes, prefill.values - prefill.values[:, :1]),
            prefill_power=_power(pieces, [chunk.power_w for chunk in chunks]),
            draft=None if drafter is None else _draft(drafter),
        )

    def step_s(self, batch: ArrayLike, context_tokens: ArrayLike, query_tokens: ArrayLike) -> Array:
        """A step's time; below the smallest batch or context measured, the smallest one's. [s]."""
        return self.step.at(
            self.step.clamped(0, batch), self.step.clamped(1, context_tokens), query_tokens
        )

    def increment_s(
        self,
        batch: ArrayLike,
        context_tokens: ArrayLike,
        query_tokens: ArrayLike,
        prefill_tokens: ArrayLike,
    ) -> Array:
        """What a chunk adds to a step. [s].

        The context's part is in both the mixed and the plain step, so the increment hardly depends
        on it: outside the contexts measured, the nearest stands in.
        """
        return self.increment.at(
            self.increment.clamped(0, batch),
            self.increment.clamped(1, context_tokens, above=True),
            query_tokens,
            prefill_tokens,
        )

    def own_context_s(
        self, tokens: ArrayLike, chunk_tokens: ArrayLike, cached_tokens: ArrayLike
    ) -> Array:
        """Extra time of a prompt for attending to what of it is already cached. [s].

        Args:
            tokens: Prompt tokens to process.
            chunk_tokens: Size of the chunks it is processed in.
            cached_tokens: Mean context of the prompt before a chunk.
        """
        chunk = self.own.clamped(0, chunk_tokens, above=True)
        extra = np.maximum(self.own.at(chunk, cached_tokens), 0.0)
        return np.asarray(extra * np.asarray(tokens) / chunk)

    def own_knots(self) -> tuple[Array, Array]:
        """A prompt's own context, and what chunks of each size take more after it.

        Where memory ran out at long contexts, the longest that every chunk was measured at stand
        in.

        Returns:
            The contexts [H, tokens] and the times [chunk sizes, H, s].
        """
        measured = np.isfinite(self.own.values).all(axis=0)
        return self.own.axes[1][measured], np.maximum(self.own.values[:, measured], 0.0)

    def draft_s(self, batch: ArrayLike, draft_tokens: int, part: ArrayLike = 1.0) -> Array:
        """Drafting of a round [s]; nought where nothing is drafted.

        Args:
            batch: Sequences that run.
            draft_tokens: Of each that drafts.
            part: Of the sequences that does.
        """
        batch, part = np.asarray(batch), np.asarray(part)
        if draft_tokens == 0 or self.draft is None:
            return np.zeros(np.broadcast_shapes(batch.shape, part.shape))
        drafted = self.draft.at(self.draft.clamped(0, batch * part), draft_tokens)
        return np.where(part > 0, drafted, 0.0)

    def round_s(
        self,
        batch: ArrayLike,
        context_tokens: ArrayLike,
        draft_tokens: int,
        part: ArrayLike,
        idle_overhead: float,
    ) -> Array:
        """A round without prefill: drafting and a step. [s].

        Steps that verify drafts of some sequences beside others without were not measured. They are
        modelled: as long as one in which every sequence has the mean of their tokens, read between
        the widths that were.

        Args:
            batch: Sequences that run.
            context_tokens: Their mean context.
            draft_tokens: Of each that drafts.
            part: Of the sequences that does.
            idle_overhead: Part by which a step without any drafts takes longer.
        """
        query = 1 + draft_tokens * np.asarray(part)
        step = self.step_s(batch, context_tokens, query)
        drafted = drafting.round_s(step, self.draft_s(batch, draft_tokens, part))
        idle = drafting.plain_step_with_drafter_s(step, idle_overhead)
        return np.where(query > 1, drafted, idle)


def _power(places: Sequence[tuple[int, ...]], watts: list[float | None]) -> Surface | None:
    known = [watt for watt in watts if watt is not None]
    return Surface.of_rows(places, known) if len(known) == len(watts) else None


def _increment(profile: Profile, step: Surface) -> Surface:
    rows = profile.mixed.rows
    places = [(r.batch, r.context_tokens, r.query_tokens) for r in rows]
    bases = step.at(*np.array(places, dtype=float).T)
    points = [(*place, row.prefill_tokens) for place, row in zip(places, rows, strict=True)]
    # Noise can make a small chunk look free or better; less than free cannot be.
    values = np.maximum(np.array([row.step_s for row in rows]) - bases, 0.0)
    nothing = [(*place, 0) for place in dict.fromkeys(places)]
    return Surface.of_rows(points + nothing, np.concatenate([values, np.zeros(len(nothing))]))


def _draft(drafter: Drafter) -> Surface:
    cells = drafter.draft.rows
    return Surface.of_rows(
        [(cell.batch, cell.draft_tokens) for cell in cells], [cell.draft_s for cell in cells]
    )
