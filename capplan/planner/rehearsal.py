"""A replica and its requests as arrays for a simulation: the same profile, tabulated and drawn."""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from capplan.physics import acceptance, lengths
from capplan.physics.engine import Engine, Indices, Requests
from capplan.physics.roots import crossing
from capplan.physics.surface import Array
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve, largest_measured
from capplan.planner.rounds import Rounds, variants_that_run
from capplan.planner.speculation import shares_of, tables
from capplan.planner.surfaces import Surfaces
from capplan.records.acceptance import Acceptance

_STRATA = 32
"""Equal parts into which requests of a class are cut by how readily their drafts are kept."""
_GROUPS = 8
"""Progress clocks: kinds with similar tokens per round share one."""


def engine(curve: Curve, mix: int) -> Engine:
    """Step times of a replica under a policy, at every whole batch that was measured.

    Args:
        curve: The replica under its policy.
        mix: The mix of classes, for the tokens of a step and the context at which chunks are read.
    """
    replica, surfaces = curve.replica, curve.replica.surfaces
    largest = min(largest_measured(curve, mix), replica.profile.limits.max_batch)
    rounds = Rounds.of(curve, mix, largest)
    running = variants_that_run(curve)
    cached_tokens, own_s = surfaces.own_knots()
    return Engine(
        draft_tokens=np.array(replica.variants.draft_tokens, dtype=np.int64)[running],
        variant_by_batch=_variant_by_batch(curve, largest),
        context_tokens=rounds.context_tokens,
        step_s=rounds.step_s,
        draft_s=rounds.draft_s,
        chunk_tokens=_chunk_tokens(surfaces),
        chunk_s=np.array([_chunks(curve, mix, largest, variant) for variant in running]),
        own_tokens=surfaces.prefill.axes[0],
        own_cached_tokens=cached_tokens,
        own_s=own_s,
        max_batched_tokens=replica.profile.limits.max_batched_tokens,
        cache_tokens=float(replica.cache_tokens[int(curve.variant[-1])]),
        saved_s=rounds.saved_s,
    )


def _chunk_tokens(surfaces: Surfaces) -> Array:
    """Knots of the chunk's size; 1 is one of them, for even that is a whole step when alone."""
    return np.union1d(surfaces.increment.axes[3], [1.0])


def _chunks(curve: Curve, mix: int, largest: int, variant: int) -> Array:
    """What prefill chunks add to a step, and at batch 0 what they take alone. [N + 1, P]."""
    surfaces = curve.replica.surfaces
    tokens = _chunk_tokens(surfaces)
    context = float(curve.replica.context_tokens[mix].mean())
    query = float(curve.replica.query_tokens[mix, variant])
    batch = np.arange(1, largest + 1)[:, None]
    added = np.zeros((largest + 1, len(tokens)))
    added[1:] = surfaces.increment_s(batch, context, query, tokens)
    base = surfaces.prefill.axes[1][0]
    alone = surfaces.prefill.at(surfaces.prefill.clamped(0, tokens, above=True), base)
    # The engine that decodes nothing is no slower than the one that decodes one sequence.
    one = surfaces.step_s(1, context, query) + added[1]
    added[0] = np.where(tokens > 0, np.minimum(alone, one), 0.0)
    return added


def _variant_by_batch(curve: Curve, largest: int) -> Indices:
    variant, drafts = np.zeros(largest + 1, dtype=np.int64), curve.draft_lengths
    for draft in curve.ranges:
        variant[draft.from_batch : draft.to_batch + 1] = drafts.index(draft.draft_tokens)
    variant[0] = variant[min(1, largest)]
    return variant


def requests(candidate: Candidate, curve: Curve, mix: int, arrival_s: Array, seed: int) -> Requests:
    """Requests of a mix with lengths and luck drawn in strata; the same seed draws the same.

    Args:
        candidate: For the classes.
        curve: For the draft lengths.
        mix: Shares of the classes.
        arrival_s: Arrival times in mean gaps. [requests]
        seed: Of the draws.
    """
    from scipy.special import ndtri  # a tenth of a second, which the balance alone need not pay

    rng = np.random.default_rng(seed)
    shares = curve.replica.load.shares[mix]
    traffic_class = _classes(shares, len(arrival_s), rng)
    prompt, output = np.zeros(len(arrival_s)), np.zeros(len(arrival_s))
    stratum = np.zeros(len(arrival_s), dtype=np.int64)
    fresh = np.zeros(len(arrival_s))
    for place, traffic in enumerate(candidate.demand.classes):
        here = np.flatnonzero(traffic_class == place)
        drawn = _drawn(np.array(traffic.prompt_tokens), _strata(len(here), rng))
        prompt[here] = np.maximum(drawn, 1.0)
        output[here] = np.rint(_drawn(np.array(traffic.output_tokens), _strata(len(here), rng)))
        stratum[here] = (_strata(len(here), rng) * _STRATA).astype(np.int64)
        fresh[here] = np.maximum(prompt[here] * (1 - traffic.prefix_reuse), 1.0)
    tokens, second = _kinds(candidate, curve)
    undrafted = [place in curve.undrafted for place in range(len(shares))]
    group, group_tokens = _grouped(tokens, shares, np.repeat(undrafted, _STRATA))
    return Requests(
        arrival_s=arrival_s,
        prefill_tokens=fresh,
        cached_tokens=prompt - fresh,
        output_tokens=np.maximum(output, 1.0),
        traffic_class=traffic_class,
        kind=traffic_class * _STRATA + stratum,
        noise=ndtri(_strata(len(arrival_s), rng)),
        tokens_per_round=tokens,
        second_moment=second,
        group=group,
        group_tokens=group_tokens,
        undrafted_group=_GROUPS if curve.undrafted else -1,
    )


def _strata(count: int, rng: np.random.Generator) -> Array:
    """Uniform draws, one in each of `count` equal parts, in random order."""
    return np.asarray((rng.permutation(count) + rng.random(count)) / max(count, 1))


def _classes(shares: Array, count: int, rng: np.random.Generator) -> Indices:
    """Classes by their shares, in random order."""
    edges = np.cumsum(shares / shares.sum())
    drawn = np.searchsorted(edges, _strata(count, rng), side="right")
    return np.minimum(drawn, len(shares) - 1).astype(np.int64)


def _drawn(nodes: Array, uniform: Array) -> Array:
    """Token counts at uniform draws, straight in the logarithm between quantiles, mean kept."""
    order = np.argsort(lengths.PROBABILITIES)
    logs = np.log(np.maximum(nodes[order], 1e-9))
    found = np.exp(np.interp(uniform, lengths.PROBABILITIES[order], logs))
    mean = float(lengths.WEIGHTS @ nodes)
    return found * (mean / found.mean()) if len(found) else found


def _kinds(candidate: Candidate, curve: Curve) -> tuple[Array, Array]:
    """Mean and mean square of a round's tokens, by kind and variant. [J · strata, V]."""
    demand, replica, drafts = candidate.demand, curve.replica, curve.draft_lengths
    plain = np.ones((_STRATA, len(drafts)))
    if replica.drafter is None or not curve.loaded:
        whole = np.tile(plain, (len(demand.classes), 1))
        return whole, whole.copy()
    rows = [
        (plain, plain) if place in curve.undrafted else _spread(table, drafts)
        for place, table in enumerate(tables(replica.profile, replica.drafter, demand))
    ]
    means = np.concatenate([mean for mean, _ in rows])
    return means, np.concatenate([square for _, square in rows])


def _spread(table: Acceptance, drafts: list[int]) -> tuple[Array, Array]:
    """Requests of one class in strata of their acceptance; together they emit what was counted.

    Counts hold tokens over rounds, the harmonic mean over requests: the strata are shifted until
    theirs, at the longest draft that runs, is the same.
    """
    shares = shares_of(table)
    z = [NormalDist().inv_cdf((stratum + 0.5) / _STRATA) for stratum in range(_STRATA)]
    longest = drafts[-1]
    counted = float(acceptance.tokens_per_round(shares)[longest])

    def strata(centre: float) -> list[Array]:
        return [acceptance.shifted_shares(shares, centre + table.per_request_sd * s) for s in z]

    def surplus(centre: float) -> float:
        tokens = np.array([acceptance.tokens_per_round(s)[longest] for s in strata(centre)])
        return float(1 / np.mean(1 / tokens)) - counted

    centre = crossing(surplus, -0.2, 0.2) if table.per_request_sd > 0 and longest > 0 else 0.0
    kept = strata(centre or 0.0)
    means = np.array([acceptance.tokens_per_round(s)[drafts] for s in kept])
    variances = np.array([acceptance.tokens_per_round_variance(s)[drafts] for s in kept])
    return means, variances + means**2


def _grouped(tokens: Array, shares: Array, undrafted: NDArray[np.bool_]) -> tuple[Indices, Array]:
    """Kinds sorted into clocks by their tokens per round, each clock moving by its kinds' mean.

    Those that go without drafts have a clock of their own, the last.
    """
    order = np.argsort(tokens[:, -1], kind="stable")
    if tokens[order[0], -1] == tokens[order[-1], -1] and not undrafted.any():
        return np.zeros(len(tokens), dtype=np.int64), tokens[:1].copy()
    weight = np.where(undrafted, 0.0, np.repeat(shares, _STRATA))[order]
    middle = (np.cumsum(weight) - weight / 2) / max(weight.sum(), 1e-12)
    group = np.zeros(len(tokens), dtype=np.int64)
    group[order] = np.minimum((middle * _GROUPS).astype(np.int64), _GROUPS - 1)
    group[undrafted] = _GROUPS
    moved = [
        tokens[group == one].mean(axis=0) if (group == one).any() else tokens.mean(axis=0)
        for one in range(_GROUPS + int(undrafted.any()))
    ]
    return group, np.array(moved)
