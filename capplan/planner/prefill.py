"""What the prompts of new requests cost a replica that is decoding.

A prompt is processed in chunks beside the decoding batch. Verification tokens and chunks share one
token budget a step, so longer drafts leave smaller chunks.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from capplan.physics import lengths
from capplan.physics.surface import Array
from capplan.planner.load import Load
from capplan.planner.surfaces import Surfaces
from capplan.records.profile import Profile

_REPORTED = len(lengths.REPORTED)


@dataclass(frozen=True)
class Prefill:
    """Prefill beside each batch. V variants, B batches, J classes, P reported percentiles.

    Attributes:
        chunk_limit_tokens: Largest chunk that the budget and the measurement allow; NaN where
            verification leaves no room. [V, B]
        full_chunk_s: What a chunk of that size adds to a step. [V, B]
        mean_steps: Steps that carry a prompt's chunks, mean over prompts. [V, B, J]
        mean_engine_s: Engine time that a prompt adds, mean over prompts. [V, B, J]
        square_engine_s2: Its mean square. [V, B, J]
        mean_own_s: Part of it that goes to attending to the prompt's own context. [V, B, J]
        steps: The same two for prompts at the reported percentiles. [V, B, J, P]
        engine_s_by_percentile: [V, B, J, P]
    """

    chunk_limit_tokens: Array
    full_chunk_s: Array
    mean_steps: Array
    mean_engine_s: Array
    square_engine_s2: Array
    mean_own_s: Array
    steps: Array
    engine_s_by_percentile: Array

    @classmethod
    def of(
        cls,
        profile: Profile,
        load: Load,
        surfaces: Surfaces,
        query_tokens: Array,
        batch: Array,
        context_tokens: Array,
    ) -> Self:
        """Cost of prompts beside each batch.

        Args:
            profile: For its token budget.
            load: The prompts.
            surfaces: The profile's times.
            query_tokens: That a step processes for a decoding sequence, mean. [mixes, V]
            batch: The grid. [B]
            context_tokens: Mean context of decoding sequences. [mixes, V]
        """
        # The increment hardly knows the decoding context: the mean over mixes stands for all. So it
        # does for the tokens where classes draft beside others that do not.
        query, context = (of.mean(axis=0)[:, None] for of in (query_tokens, context_tokens))
        limit = _chunk_limit(profile, surfaces, query, batch)
        full_s = surfaces.increment_s(batch, context, query, limit)
        prompt = load.prefill_tokens
        wide = (..., None, None)
        chunks = np.floor(prompt / limit[wide])
        rest = prompt - chunks * limit[wide]
        rest_s = surfaces.increment_s(
            batch[:, None, None], context[wide], query[wide], np.maximum(rest, 0.0)
        )
        chunk = np.minimum(prompt, limit[wide])
        own_s = surfaces.own_context_s(prompt, chunk, load.cached_tokens + (prompt - chunk) / 2)
        engine_s = chunks * full_s[wide] + rest_s + own_s
        steps = np.ceil(prompt / limit[wide])
        return cls(
            chunk_limit_tokens=limit,
            full_chunk_s=full_s,
            mean_steps=steps @ lengths.WEIGHTS,
            mean_engine_s=engine_s @ lengths.WEIGHTS,
            square_engine_s2=engine_s**2 @ lengths.WEIGHTS,
            mean_own_s=own_s @ lengths.WEIGHTS,
            steps=steps[..., -_REPORTED:],
            engine_s_by_percentile=engine_s[..., -_REPORTED:],
        )

    def engine_s(self, shares: Array) -> Array:
        """Engine time that an average request's prefill adds. [mixes, V, B].

        Args:
            shares: Part of each class in each mix. [mixes, J]
        """
        return np.asarray(np.einsum("mj,vbj->mvb", shares, self.mean_engine_s))

    def engine_square_s2(self, shares: Array) -> Array:
        """Mean square of the engine time that a request's prefill adds. [mixes, V, B]."""
        return np.asarray(np.einsum("mj,vbj->mvb", shares, self.square_engine_s2))

    def own_s(self, shares: Array) -> Array:
        """The part of it for attending to prompts' own context. [mixes, V, B]."""
        return np.asarray(np.einsum("mj,vbj->mvb", shares, self.mean_own_s))

    def steps_per_request(self, shares: Array) -> Array:
        """Steps that carry an average request's chunks. [mixes, V, B]."""
        return np.asarray(np.einsum("mj,vbj->mvb", shares, self.mean_steps))


def _chunk_limit(profile: Profile, surfaces: Surfaces, query: Array, batch: Array) -> Array:
    budget = profile.limits.max_batched_tokens - np.maximum(batch, 1.0) * query
    limit = np.minimum(budget, surfaces.increment.axes[3][-1])
    return np.where(limit >= 1, limit, np.nan)
