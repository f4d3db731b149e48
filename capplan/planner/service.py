"""Everything that one replica does, over all batches at once.

For each mix of classes, each way of running a round and each batch of a grid: the rate that keeps
that batch in balance and the time of a round. Arrays throughout; the letters of their shapes are
M mixes, V variants, B batches, J classes.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from capplan.physics import acceptance, equilibrium, memory
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
        drafting: Part of them whose classes take drafts. [M, V]
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
    drafting: Array
    tokens_per_round: Array
    unstretched_s: Array
    rate_per_s: Array
    round_s: Array
    cache_tokens: Array
    held_tokens: Array
    memory_limit: Array

    @property
    def room_tokens(self) -> float:
        """What the cache holds of one request alone, whatever it drafts."""
        return float((self.cache_tokens - np.array(self.variants.draft_tokens)).min())

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
        running = _Running.of(load, by_class, variants)
        context, query = running.context_tokens, running.query_tokens
        overhead = profile.drafters[drafter].loaded_idle_overhead if drafter else 0.0
        one = np.ones(1)
        first = _round_s(surfaces, variants, overhead, running, one)[..., 0]
        prompt = Prefill.of(profile, load, surfaces, query, one, context)
        cache = _cache_tokens(profile, drafter, variants)
        held = _held(profile, query, context)
        batch = _grid(surfaces, rounds * first, prompt.engine_s(load.shares)[..., 0])
        unstretched = _round_s(surfaces, variants, overhead, running, batch)
        prefill = Prefill.of(profile, load, surfaces, query, batch, context)
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
            drafting=running.drafting,
            tokens_per_round=acceptance.mixed_tokens_per_round(
                (load.shares * load.decode_tokens)[:, None, :],
                load.shares[:, None, :] * by_class,
            ),
            unstretched_s=unstretched,
            rate_per_s=rate,
            round_s=equilibrium.stretched_round_s(unstretched, rate, prefill_s),
            cache_tokens=cache,
            held_tokens=memory.held_by_one(held, running.context_variance),
            memory_limit=memory.batch_that_fits(cache, held, running.context_variance),
        )

    @property
    def query_tokens(self) -> Array:
        """Tokens that a step processes for a decoding sequence, mean. [M, V]."""
        return _query_tokens(self.variants, self.drafting)


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


@dataclass(frozen=True)
class _Running:
    """Sequences found decoding: classes weigh by the rounds they stay. Each [M, V].

    Attributes:
        context_tokens: Mean.
        context_variance: Of the same.
        drafting: Part whose classes take drafts.
        query_tokens: Of a step for each of them, mean.
    """

    context_tokens: Array
    context_variance: Array
    drafting: Array
    query_tokens: Array

    @classmethod
    def of(cls, load: Load, rounds_by_class: Array, variants: Variants) -> Self:
        """From the rounds that each class needs. [V, J]."""
        stay = load.shares[:, None, :] * rounds_by_class
        # Where nobody decodes (answers of one token) sequences weigh by their number.
        decodes = stay.sum(axis=-1, keepdims=True) > 0
        stay = np.where(decodes, stay, load.shares[:, None, :])
        total = stay.sum(axis=-1, keepdims=True)
        weight = stay / total
        mean = weight @ load.resident_tokens
        second = weight @ (load.resident_variance + load.resident_tokens**2)
        drafts = [place not in variants.undrafted for place in range(stay.shape[-1])]
        part = np.where(drafts, stay, 0.0).sum(axis=-1) / total[..., 0]
        variance = np.maximum(second - mean**2, 0.0)
        return cls(mean, variance, part, _query_tokens(variants, part))


def _query_tokens(variants: Variants, part: Array) -> Array:
    return np.asarray(1 + np.array(variants.draft_tokens) * part)


def _round_s(
    surfaces: Surfaces, variants: Variants, overhead: float, running: _Running, batch: Array
) -> Array:
    """A round without prefill, by mix, variant and batch. [M, V, B]."""
    times = [
        surfaces.round_s(
            batch,
            running.context_tokens[:, place, None],
            draft_tokens,
            running.drafting[:, place, None],
            overhead if loaded else 0.0,
        )
        for place, (draft_tokens, loaded) in enumerate(
            zip(variants.draft_tokens, variants.loaded, strict=True)
        )
    ]
    return np.stack(times, axis=1)


def _cache_tokens(profile: Profile, drafter: str | None, variants: Variants) -> Array:
    """Tokens of context that fit beside weights and drafter. [V]."""
    capacity = np.full(len(variants.draft_tokens), profile.memory.kv_capacity_tokens)
    if drafter is not None:
        cost = profile.drafters[drafter]
        capacity[np.array(variants.loaded)] = memory.kv_tokens_beside_drafter(
            profile.memory.kv_capacity_tokens,
            profile.model.kv_bytes_per_token,
            cost.memory_bytes,
            cost.kv_bytes_per_token,
        )
    return capacity


def _held(profile: Profile, query_tokens: Array, context_tokens: Array) -> Array:
    """Tokens' worth of cache of a sequence: context, look-ahead slots, state. [M, V]."""
    state = profile.memory.state_bytes_per_sequence / profile.model.kv_bytes_per_token
    # A verification step keeps a checkpoint of the state for each of its tokens.
    return np.asarray(context_tokens + (query_tokens - 1) + state * query_tokens)
