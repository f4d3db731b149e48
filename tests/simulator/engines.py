"""Engines and requests small enough to reason about."""

import numpy as np

from capplan.physics.acceptance import tokens_per_round, tokens_per_round_variance
from capplan.physics.engine import Engine, Requests
from capplan.simulator.arrivals import poisson


def engine(
    *,
    fixed_s=5e-3,
    batch_s=1e-4,
    context_s=2e-9,
    token_s=2e-5,
    attending_s=0.0,
    max_batch=64,
    budget=512,
    cache_tokens=1e9,
    draft_tokens=(0,),
    variant_by_batch=None,
    verify_s=1e-5,
    drafting_s=5e-4,
) -> Engine:
    """Round: fixed + batch (and context, drafts) · n; prefill adds token_s a token."""
    batch = np.arange(max_batch + 1)
    context = np.array([0.0, 1000.0, 4000.0, 100_000.0])
    drafts = np.array(draft_tokens)
    per_sequence = batch_s + drafts[:, None] * verify_s
    round_s = np.where(batch > 0, fixed_s + per_sequence * batch + drafts[:, None] * drafting_s, 0)
    step_s = round_s[:, :, None] + batch[:, None] * context * context_s
    chunks = np.unique([0, 16, 64, 256, budget]).astype(float)
    chunk_s = np.broadcast_to(token_s * chunks, (len(drafts), max_batch + 1, len(chunks))).copy()
    own_tokens, own_cached = np.array([16.0, float(budget)]), np.array([0.0, 1e3, 1e5])
    return Engine(
        draft_tokens=drafts,
        variant_by_batch=(
            np.zeros(max_batch + 1, dtype=np.int64)
            if variant_by_batch is None
            else np.asarray(variant_by_batch)
        ),
        context_tokens=context,
        step_s=step_s,
        draft_s=np.where(batch > 0, drafts[:, None] * drafting_s, 0.0),
        chunk_tokens=chunks,
        chunk_s=chunk_s,
        own_tokens=own_tokens,
        own_cached_tokens=own_cached,
        own_s=attending_s * own_tokens[:, None] * own_cached,
        max_batched_tokens=budget,
        cache_tokens=cache_tokens,
    )


def requests(
    count,
    *,
    seed=0,
    prompt=100,
    cached=0,
    output=100,
    arrival_s=None,
    kept=((),),
    groups=None,
) -> Requests:
    """Lengths are numbers or functions of (rng, count); `kept` are shares by kind."""
    rng = np.random.default_rng(seed)
    arrivals = poisson(count, rng) if arrival_s is None else np.asarray(arrival_s, dtype=float)

    def lengths(of):
        return of(rng, count) if callable(of) else np.full(count, float(of))

    per_round = np.array([tokens_per_round(np.array(shares)) for shares in kept])
    variance = np.array([tokens_per_round_variance(np.array(shares)) for shares in kept])
    group = np.arange(len(kept)) if groups is None else np.asarray(groups)
    clocks = [per_round[group == g].mean(axis=0) for g in range(group.max() + 1)]
    return Requests(
        arrival_s=arrivals,
        prefill_tokens=lengths(prompt),
        cached_tokens=lengths(cached),
        output_tokens=lengths(output),
        traffic_class=np.zeros(count, dtype=np.int64),
        kind=rng.integers(0, len(kept), count),
        noise=rng.normal(size=count),
        tokens_per_round=per_round,
        second_moment=variance + per_round**2,
        group=group,
        group_tokens=np.array(clocks),
    )


def lognormal(mean, cv):
    """Whole lengths, at least 1."""
    spread = np.log(1 + cv**2)
    return lambda rng, count: np.maximum(
        1, np.rint(rng.lognormal(np.log(mean) - spread / 2, np.sqrt(spread), count))
    )


def geometric(mean):
    return lambda rng, count: rng.geometric(1 / mean, count).astype(float)
