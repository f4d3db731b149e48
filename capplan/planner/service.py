"""Everything that one replica does, over all batches at once.

For each mix of classes, each way of running a round and each batch of a grid: the rate that keeps
that batch in balance and the time of a round. Arrays throughout; the letters of their shapes are
M mixes, V variants, B batches, J classes.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from capplan.physics import acceptance, drafting, equilibrium, memory
from capplan.physics.surface import Array
from capplan.planner.load import Load
from capplan.planner.prefill import Prefill
from capplan.planner.speculation import Variants
from capplan.planner.surfaces import Surfaces
from capplan.records.profile import Profile

_ALONE = 0.02
"""Mean batch that stands for a replica which serves one request at a time."""
_POINTS = 112
"""Of the grid from one sequence up: four to five per cent from one to the next."""


@dataclass(frozen=True)
class Replica:
    """One replica at every batch.

    Attributes:
        batch: The grid. [B]
        context_tokens: Mean context of decoding sequences. [M, V]
        tokens_per_round: Mean over the mix. [M, V]
        unstretched_s: A round without prefill. [M, V, B]
        rate_per_s: Requests that keep the batch in balance; NaN where nothing was measured. Same.
        round_s: A round with prefill mixed in. Same.
        memory_limit: Batch whose context fits. [M, V]
    """

    profile: Profile
    drafter: str | None
    load: Load
    surfaces: Surfaces
    variants: Variants
    prefill: Prefill
    batch: Array
    context_tokens: Array
    tokens_per_round: Array
    unstretched_s: Array
    rate_per_s: Array
    round_s: Array
    memory_limit: Array

    @classmethod
    def of(
        cls,
        profile: Profile,
        drafter: str | None,
        load: Load,
        surfaces: Surfaces,
        variants: Variants,
    ) -> Self:
        """Solves the replica at every batch of the grid."""
        batch = _grid(surfaces)
        by_class = load.decode_tokens / variants.tokens_per_round
        rounds = load.shares @ by_class.T
        context, variance = _resident(load, by_class)
        unstretched = _round_s(profile, drafter, surfaces, variants, batch, context)
        prefill = Prefill.of(profile, load, surfaces, variants, batch, context)
        prefill_s = prefill.engine_s(load.shares)
        rate = equilibrium.rate_per_s(batch, rounds[..., None], unstretched, prefill_s)
        return cls(
            profile=profile,
            drafter=drafter,
            load=load,
            surfaces=surfaces,
            variants=variants,
            prefill=prefill,
            batch=batch,
            context_tokens=context,
            tokens_per_round=acceptance.mixed_tokens_per_round(
                (load.shares * load.decode_tokens)[:, None, :],
                load.shares[:, None, :] * by_class,
            ),
            unstretched_s=unstretched,
            rate_per_s=rate,
            round_s=equilibrium.stretched_round_s(unstretched, rate, prefill_s),
            memory_limit=_memory_limit(profile, drafter, variants, context, variance),
        )


def _grid(surfaces: Surfaces) -> Array:
    """Batches from one request alone to the largest measured, every measured one among them."""
    largest = min(surfaces.step.axes[0][-1], surfaces.increment.axes[0][-1])
    measured = surfaces.step.axes[0]
    spread = np.geomspace(1.0, largest, _POINTS)
    alone = np.geomspace(_ALONE, 1.0, 6)
    return np.unique(np.round(np.concatenate([alone, spread, measured[measured <= largest]]), 6))


def _resident(load: Load, rounds_by_class: Array) -> tuple[Array, Array]:
    """Context of the sequences found decoding: classes weigh by the rounds they stay. [M, V]."""
    stay = load.shares[:, None, :] * rounds_by_class
    total = stay.sum(axis=-1, keepdims=True)
    # Where nobody decodes (answers of one token) sequences weigh by their number.
    weight = np.where(total > 0, stay, load.shares[:, None, :]) / np.where(total > 0, total, 1.0)
    mean = weight @ load.resident_tokens
    second = weight @ (load.resident_variance + load.resident_tokens**2)
    return mean, second - mean**2


def _round_s(
    profile: Profile,
    drafter: str | None,
    surfaces: Surfaces,
    variants: Variants,
    batch: Array,
    context_tokens: Array,
) -> Array:
    """A round without prefill, by mix, variant and batch. [M, V, B]."""
    times = []
    for place, (draft_tokens, loaded) in enumerate(
        zip(variants.draft_tokens, variants.loaded, strict=True)
    ):
        step = surfaces.step_s(batch, context_tokens[:, place, None], draft_tokens + 1)
        if draft_tokens > 0:
            step = drafting.round_s(step, surfaces.draft_s(batch, draft_tokens))
        elif loaded and drafter is not None:
            overhead = profile.drafters[drafter].loaded_idle_overhead
            step = drafting.plain_step_with_drafter_s(step, overhead)
        times.append(step)
    return np.stack(times, axis=1)


def _memory_limit(
    profile: Profile,
    drafter: str | None,
    variants: Variants,
    context_tokens: Array,
    variance: Array,
) -> Array:
    """Sequences whose context, look-ahead slots and state fit beside the weights. [M, V]."""
    per_token = profile.model.kv_bytes_per_token
    capacity = np.full(len(variants.draft_tokens), profile.memory.kv_capacity_tokens)
    if drafter is not None:
        cost = profile.drafters[drafter]
        capacity[1:] = memory.kv_tokens_beside_drafter(
            profile.memory.kv_capacity_tokens,
            per_token,
            cost.memory_bytes,
            cost.kv_bytes_per_token,
        )
    look_ahead = np.array(variants.draft_tokens)
    state = profile.memory.state_bytes_per_sequence / per_token
    # A verification step keeps a checkpoint of the state for each of its tokens.
    held = context_tokens + look_ahead + state * (look_ahead + 1)
    return memory.batch_that_fits(capacity, held, variance)
