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
_IDLE = 0.01
"""Part of the engine's time that prefill may take at the first point of the grid."""
_FEWEST_ROUNDS = 1e-3
"""Answers of one token need no round; a thousandth keeps batch and rate tied to one another."""
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
        cache_tokens: Tokens of context that the cache holds. [V]
        held_tokens: Tokens that one sequence needs with its fluctuation. [M, V]
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
    cache_tokens: Array
    held_tokens: Array
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
        by_class = load.decode_tokens / variants.tokens_per_round
        rounds = np.maximum(load.shares @ by_class.T, _FEWEST_ROUNDS)
        context, variance = _resident(load, by_class)
        one = np.ones(1)
        first = _round_s(profile, drafter, surfaces, variants, one, context)[..., 0]
        prompt = Prefill.of(profile, load, surfaces, variants, one, context)
        cache, held = _cache_tokens(profile, drafter, variants), _held(profile, variants, context)
        batch = _grid(surfaces, rounds * first, prompt.engine_s(load.shares)[..., 0])
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
            cache_tokens=cache,
            held_tokens=memory.held_by_one(held, variance),
            memory_limit=memory.batch_that_fits(cache, held, variance),
        )


def _grid(surfaces: Surfaces, decode_s: Array, prefill_s: Array) -> Array:
    """Batches from one request alone to the largest measured, every measured one among them.

    Args:
        surfaces: For what was measured.
        decode_s: Time that a request alone decodes. [M, V]
        prefill_s: Time of its prefill. [M, V]
    """
    largest = min(surfaces.step.axes[0][-1], surfaces.increment.axes[0][-1])
    measured = surfaces.step.axes[0][surfaces.step.axes[0] <= largest]
    spread = np.geomspace(1.0, largest, _POINTS)
    # A point beside a measured one would be the same point but for rounding.
    spread = spread[~np.isclose(spread[:, None], measured, rtol=1e-6).any(axis=1)]
    # At a batch of b prefill takes b ΔT / (K T0 + b ΔT) of the time: little, where nobody waits.
    idle = _IDLE * np.nanmin(decode_s / np.maximum(prefill_s, 1e-12), initial=1.0)
    lowest = max(min(_ALONE, idle), 1e-9)
    alone = np.geomspace(lowest, 1.0, 6 if lowest == _ALONE else 40)
    return np.unique(np.concatenate([alone[:-1], [1.0], spread[spread > 1], measured]))


def _resident(load: Load, rounds_by_class: Array) -> tuple[Array, Array]:
    """Context of the sequences found decoding: classes weigh by the rounds they stay. [M, V]."""
    stay = load.shares[:, None, :] * rounds_by_class
    total = stay.sum(axis=-1, keepdims=True)
    # Where nobody decodes (answers of one token) sequences weigh by their number.
    weight = np.where(total > 0, stay, load.shares[:, None, :]) / np.where(total > 0, total, 1.0)
    mean = weight @ load.resident_tokens
    second = weight @ (load.resident_variance + load.resident_tokens**2)
    return mean, np.maximum(second - mean**2, 0.0)


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


def _cache_tokens(profile: Profile, drafter: str | None, variants: Variants) -> Array:
    """Tokens of context that fit beside weights and drafter. [V]."""
    capacity = np.full(len(variants.draft_tokens), profile.memory.kv_capacity_tokens)
    if drafter is not None:
        cost = profile.drafters[drafter]
        capacity[1:] = memory.kv_tokens_beside_drafter(
            profile.memory.kv_capacity_tokens,
            profile.model.kv_bytes_per_token,
            cost.memory_bytes,
            cost.kv_bytes_per_token,
        )
    return capacity


def _held(profile: Profile, variants: Variants, context_tokens: Array) -> Array:
    """Tokens' worth of cache of a sequence: context, look-ahead slots, state. [M, V]."""
    look_ahead = np.array(variants.draft_tokens)
    state = profile.memory.state_bytes_per_sequence / profile.model.kv_bytes_per_token
    # A verification step keeps a checkpoint of the state for each of its tokens.
    return np.asarray(context_tokens + look_ahead + state * (look_ahead + 1))
