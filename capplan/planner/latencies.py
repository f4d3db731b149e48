"""Each objective's latency over a replica's grid: modelled, not simulated."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from capplan.physics import latency, lengths
from capplan.physics.surface import Array
from capplan.planner.load import Load
from capplan.planner.service import Replica
from capplan.records.forecast import Objective
from capplan.records.plan import Demand

Estimates = dict[tuple[int, Objective], Array]
"""By class and objective, over mixes, variants and batches. [s]"""

PERCENTILES = dict(zip(("p50", "p90", "p95", "p99"), lengths.REPORTED, strict=True))


_REPORTED = len(lengths.REPORTED)
_INSTANT_S = 1e-12
"""Stands for no time at all where a mean is divided by."""

ALWAYS_SHOWN: tuple[Objective, ...] = ("ttft_p99_s", "tpot_p99_s", "chunk_gap_p99_s")


def estimates(replica: Replica, demand: Demand) -> Estimates:
    """Every objective of every class, and the three that a report always shows."""
    gaps = cache(lambda percentile: _chunk_gap_s(replica, percentile))
    return {
        (place, objective): _estimate(replica, place, objective, gaps)
        for place, traffic in enumerate(demand.classes)
        for objective in dict.fromkeys([*traffic.objectives, *ALWAYS_SHOWN])
    }


def _estimate(
    replica: Replica, place: int, objective: Objective, gaps: Callable[[float], Array]
) -> Array:
    """One percentile of one class's latency. [M, V, B]; chunk gaps are the same for all classes."""
    metric, name, _ = objective.rsplit("_", 2)
    percentile = PERCENTILES[name]
    if metric == "tpot":
        return _tpot_s(replica, place, percentile)
    if metric == "chunk_gap":
        return gaps(percentile)
    return _ttft_s(replica, place, percentile)


def felt(load: Load, place: int, objective: Objective) -> NDArray[np.bool_]:
    """Mixes in which a class has such latencies: it sends requests that wait for tokens. [M]."""
    sends = load.shares[:, place] > 0
    return sends & (objective.startswith("ttft") or load.decode_tokens[place] > 0)


def prefill_utilisation(replica: Replica) -> Array:
    """Prompt tokens that arrive over prompt tokens that the token budget lets through. [M, V, B].

    At one, prompts queue without end: verification tokens have eaten the budget.
    """
    tokens = _mean_prompt_tokens(replica)
    full = np.isnan(replica.prefill.chunk_limit_tokens)
    load = replica.rate_per_s * tokens / _prefill_tokens_per_s(replica)
    return np.where(full, np.inf, load)


def _prefill_tokens_per_s(replica: Replica) -> Array:
    """Prompt tokens a second while prompts queue: a full chunk a step. [M, V, B]."""
    limit = replica.prefill.chunk_limit_tokens
    step = replica.unstretched_s + replica.prefill.full_chunk_s + limit * _own_s_per_token(replica)
    return np.asarray(limit / step)


def _own_s_per_token(replica: Replica) -> Array:
    """Time a prompt token takes for attending to its own prompt's context. [M, V, B]."""
    own_s = replica.prefill.own_s(replica.load.shares)
    return np.asarray(own_s / _mean_prompt_tokens(replica))


def _mean_prompt_tokens(replica: Replica) -> Array:
    """Prompt tokens to process of an average request. [M, 1, 1]."""
    load = replica.load
    return np.asarray((load.shares @ (load.prefill_tokens @ lengths.WEIGHTS))[:, None, None])


def _tpot_s(replica: Replica, place: int, percentile: float) -> Array:
    variants = replica.variants
    tokens = variants.tokens_per_round[:, place]
    tail = replica.profile.tail.tpot_p99_over_mean
    factor = latency.tpot_factor(
        percentile,
        np.array([tail["speculative" if d else "plain"] for d in variants.draft_tokens])[:, None],
        (tokens / variants.unlucky_tokens_per_round[:, place])[:, None],
        np.sqrt(_chance_variance(replica, place)),
    )
    return replica.round_s * factor / tokens[:, None]


def _chance_variance(replica: Replica, place: int) -> Array:
    """Variance over squared mean of a class's time per token from chance alone. [M, V, B].

    Two independent parts: the tokens that rounds happen to keep, m Var(N) / A³ rounds squared over
    (m / A)² of them, and the prompts of others that happen to fall into the answer.
    """
    variants, load = replica.variants, replica.load
    tokens = variants.tokens_per_round[:, place]
    typical = float(load.typical_decode_tokens[place])
    rounds = variants.variance[:, place] / (tokens * typical)
    prompts = latency.interference_variance(
        replica.rate_per_s,
        replica.prefill.engine_square_s2(load.shares),
        typical / tokens[:, None] * replica.unstretched_s,
        1 - replica.unstretched_s / replica.round_s,
    )
    return rounds[:, None] + prompts


def _chunk_gap_s(replica: Replica, percentile: float) -> Array:
    """Rounds with a prefill chunk are the long ones: the percentile falls on one or it does not."""
    load, prefill = replica.load, replica.prefill
    arrivals = replica.rate_per_s * replica.round_s
    mixed = np.minimum(arrivals * prefill.steps_per_request(load.shares), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.clip(1 - (1 - percentile) / mixed, 0.0, 1.0)
    prompt = _prompt_at(replica, within)
    mean = _mean_prompt_tokens(replica)
    # Others arrive in the same round and share the step.
    chunk = np.minimum(prompt + arrivals * mean, prefill.chunk_limit_tokens)
    query, context = replica.query_tokens[..., None], replica.context_tokens[..., None]
    added = replica.surfaces.increment_s(replica.batch, context, query, chunk)
    added = added + chunk * _own_s_per_token(replica)
    return np.where(mixed > 1 - percentile, replica.unstretched_s + added, replica.unstretched_s)


def _prompt_at(replica: Replica, probability: Array) -> Array:
    """Prompt tokens not cached at a probability that differs by mix, variant and batch."""
    result = np.zeros_like(probability)
    for mix, shares in enumerate(replica.load.shares):
        # Quantiles of the mix: classes' nodes pooled, each with its class's share.
        tokens = replica.load.prefill_tokens.ravel()
        weights = (shares[:, None] * lengths.WEIGHTS).ravel()
        rising = np.argsort(tokens)
        # Each node stands for the middle of its weight.
        reached = np.cumsum(weights[rising]) - weights[rising] / 2
        result[mix] = np.interp(probability[mix], reached, tokens[rising])
    return result


def _ttft_s(replica: Replica, place: int, percentile: float) -> Array:
    """Prefill elsewhere, if there, and what the replica adds."""
    load, column = replica.load, lengths.REPORTED.index(percentile)
    elsewhere = load.prefilled_s[place] + load.transfer_s[place]
    means, tails = ttft_parts(replica, place, percentile)
    before = np.asarray(lengths.WEIGHTS @ elsewhere), elsewhere[column - _REPORTED]
    return latency.combined([before[0], *means], [before[1], *tails])


def ttft_parts(replica: Replica, place: int, percentile: float) -> tuple[list[Array], list[Array]]:
    """Means and percentiles of what a replica adds to the time to first token. Each [M, V, B].

    Residual round, wait behind other prompts, own chunks, wait for a slot, and wait behind other
    contexts on their way to the replica.
    """
    prefill = replica.prefill
    column = lengths.REPORTED.index(percentile)
    own_mean = (
        prefill.mean_steps[..., place] * replica.unstretched_s + prefill.mean_engine_s[..., place]
    )
    own_tail = (
        prefill.steps[..., place, column] * replica.unstretched_s
        + prefill.engine_s_by_percentile[..., place, column]
    )
    residual = replica.round_s
    behind = latency.queue_wait(percentile, prefill_utilisation(replica), *_prompt_service(replica))
    slot = latency.slot_wait(percentile, *_slots(replica))
    link = latency.queue_wait(percentile, network_utilisation(replica), *_transfer(replica))
    means = [residual / 2, behind[0], own_mean, slot[0], link[0]]
    return means, [residual * percentile, behind[1], own_tail, slot[1], link[1]]


def network_utilisation(replica: Replica) -> Array:
    """Part of the time in which contexts travel to the replica. [M, V, B].

    At one they queue without end; nought if the replica processes prompts itself.
    """
    return np.asarray(replica.rate_per_s * _transfer(replica)[0])


def _transfer(replica: Replica) -> tuple[Array, Array]:
    """Mean and mean square of the time in which a context travels. [M, 1, 1]."""
    load = replica.load
    mean = load.shares @ (load.transfer_s @ lengths.WEIGHTS)
    square = load.shares @ (load.transfer_s**2 @ lengths.WEIGHTS)
    return np.maximum(mean, _INSTANT_S)[:, None, None], square[:, None, None]


def _prompt_service(replica: Replica) -> tuple[Array, Array]:
    """Mean and mean square of the time that a prompt holds the prefill budget. [M, V, B]."""
    load = replica.load
    mean = _mean_prompt_tokens(replica)
    square = (load.shares @ (load.prefill_tokens**2 @ lengths.WEIGHTS))[:, None, None]
    speed = _prefill_tokens_per_s(replica)
    return mean / speed, square / speed**2


def _slots(replica: Replica) -> tuple[Array, Array, Array, Array]:
    """Batch, its limit, the round's elasticity and the rate to spare, for `slot_wait`."""
    limit = np.minimum(replica.memory_limit, replica.profile.limits.max_batch)[..., None]
    # From the batch before: the last one that was measured has none after it.
    slope = np.diff(np.log(replica.unstretched_s), axis=-1) / np.diff(np.log(replica.batch))
    elasticity = np.concatenate([slope[..., :1], slope], axis=-1)
    saturation = _at_batch(replica, limit)
    spare = np.maximum(saturation - replica.rate_per_s, 0.0)
    return replica.batch, limit, elasticity, spare


def _at_batch(replica: Replica, batch: Array) -> Array:
    """The rate in balance at a batch given by mix and variant, within the grid. [M, V, 1]."""
    grid = replica.batch
    inside = np.clip(batch, grid[0], grid[-1])
    above = np.clip(np.searchsorted(grid, inside), 1, len(grid) - 1)
    fraction = (inside - grid[above - 1]) / (grid[above] - grid[above - 1])
    low = np.take_along_axis(replica.rate_per_s, above - 1, axis=-1)
    high = np.take_along_axis(replica.rate_per_s, above, axis=-1)
    return low + fraction * (high - low)
