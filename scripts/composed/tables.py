"""The tables of a profile, computed from a composition over a rectangular grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from capplan.physics.composition import Composition, DraftHead, draft_s, step_s
from capplan.physics.load import Load, decode_load, prefill_load
from capplan.physics.surface import Array
from capplan.records.caveat import Origin, Source
from capplan.records.profile import (
    DraftCell,
    DraftTable,
    MixedCell,
    MixedTable,
    PrefillCell,
    PrefillTable,
    StepCell,
    StepTable,
)
from composed.silicon import H200

QUERY_TOKENS = tuple(range(1, 10))
MIXED_CONTEXTS = (4096,)
PREFILL_TOKENS = (64, 256, 1024, 2048, 8192, 16384)
CACHED_TOKENS = (0, 8192, 32768, 131072)
DRAFT_TOKENS = tuple(range(1, 9))
DRAFT_CONTEXT = 4096

SHORTER = 0.10
LONGER = 0.25
"""The band around a sum of kernel times, lopsided because gaps between kernels are missing."""
MISFIT_TOKENS = 1024
"""Beyond them the band also holds how far the sparse layers' fit lies off its rows."""
DRAFT_OVERHEAD_S = (0.3e-3, 2.4e-3)

PREFILL_POWER = 0.90
TDP_W = 700.0
POWER = Source(
    what="power, assumed: medians of serving over TDP by batch on H100, MoE 0.63, 0.67, 0.70, 0.79 "
    "and dense 0.65, 0.74, 0.84, 0.90 at up to 16, 64, 256 and more; 700 W is H200's TDP",
    where="ML.ENERGY leaderboard, https://github.com/ml-energy/leaderboard, public/data",
)


@dataclass(frozen=True)
class Plan:
    """What to tabulate."""

    composition: Composition
    upper: Composition
    """The same with the assumptions that make a step longest."""
    batches: tuple[int, ...]
    mixed_batches: tuple[int, ...]
    draft_batches: tuple[int, ...]
    power_by_tokens: dict[int, float]
    """Part of TDP by tokens in the step."""
    drafter: DraftHead
    contexts: tuple[int, ...] = (1024, 4096, 16384, 65536)
    mixed_query_tokens: tuple[int, ...] = (1, 2, 4, 9)
    chunks: tuple[int, ...] = (64, 256, 1024, 2048, 8192)
    misfit: float = 0.0
    """How far rows beyond MISFIT_TOKENS lie off the sparse layers' fit, as part of it."""
    grid: str = ""
    """Why steps are tabulated where they are, as a sentence."""


def beside_edges(edges: Sequence[int], largest: int) -> tuple[int, ...]:
    """Powers of two, and the batches on both sides of every edge, whatever verification asks.

    Args:
        edges: Tokens of a step past which its time jumps.
        largest: Batch to end at, itself a power of two.
    """
    doubled = {2**power for power in range(largest.bit_length())}
    last = {edge // query for edge, query in product(edges, QUERY_TOKENS)}
    beside = {batch for one in last for batch in (one, one + 1) if 1 <= batch <= largest}
    return tuple(sorted(doubled | beside))


def step_table(plan: Plan) -> StepTable:
    """Decode and verification steps."""
    grid = list(product(plan.batches, plan.contexts, QUERY_TOKENS))
    batch, context, query = np.array(grid).T
    load = decode_load(batch, context, query)
    times = _times(plan, load)
    power = _power_w(plan.power_by_tokens, load.decode_tokens)
    sparse = plan.composition.sparse
    experts = [None] * len(grid) if sparse is None else [*map(_digits, sparse.distinct(load))]
    rows = tuple(
        StepCell(
            batch=b, context_tokens=c, query_tokens=q,
            step_s=time, low_s=low, high_s=high, power_w=watts, distinct_experts=count,
        )
        for (b, c, q), (time, low, high), watts, count in zip(
            grid, times, power, experts, strict=True
        )
    )  # fmt: skip
    sources = (*plan.composition.sources(prefill=False), POWER)
    beyond = "Some cells exceed what the KV cache holds; they only bound interpolation."
    note = " ".join(filter(None, (_band(plan), beyond, plan.grid)))
    return StepTable(origin=_origin(sources, note), rows=rows)


def mixed_table(plan: Plan) -> MixedTable:
    """Steps with a prefill chunk beside the batch."""
    grid = list(product(plan.mixed_batches, MIXED_CONTEXTS, plan.mixed_query_tokens, plan.chunks))
    times = _times(plan, decode_load(*np.array(grid).T))
    rows = tuple(
        MixedCell(
            batch=b, context_tokens=c, query_tokens=q, prefill_tokens=p,
            step_s=time, low_s=low, high_s=high,
        )
        for (b, c, q, p), (time, low, high) in zip(grid, times, strict=True)
    )  # fmt: skip
    note = f"{_band(plan)} The chunk begins its prompt: nothing of it is cached."
    return MixedTable(origin=_origin(plan.composition.sources(cached=False), note), rows=rows)


def prefill_table(plan: Plan) -> PrefillTable:
    """Prefill chunks alone."""
    grid = list(product(PREFILL_TOKENS, CACHED_TOKENS))
    times = _times(plan, prefill_load(*np.array(grid).T))
    rows = tuple(
        PrefillCell(
            tokens=tokens, cached_tokens=cached,
            step_s=time, low_s=low, high_s=high, power_w=PREFILL_POWER * TDP_W,
        )
        for (tokens, cached), (time, low, high) in zip(grid, times, strict=True)
    )  # fmt: skip
    note = f"{_band(plan)} Power is assumed, 0.90 of TDP."
    return PrefillTable(origin=_origin(plan.composition.sources(decode=False), note), rows=rows)


def draft_table(plan: Plan) -> DraftTable:
    """Drafting of one round, at 4096 tokens of context."""
    grid = list(product(plan.draft_batches, DRAFT_TOKENS))
    batch, drafted = np.array(grid).T
    times = draft_s(plan.drafter, decode_load(batch, DRAFT_CONTEXT, drafted + 1))
    low, high = (times - plan.drafter.round_s + overhead for overhead in DRAFT_OVERHEAD_S)
    rows = tuple(
        DraftCell(batch=b, draft_tokens=g, draft_s=time, low_s=least, high_s=most)
        for (b, g), time, least, most in zip(
            grid, map(_digits, times), map(_digits, low), map(_digits, high), strict=True
        )
    )
    note = (
        f"At {DRAFT_CONTEXT} tokens of context. From low to high only the assumed overhead of a "
        "round changes, 0.3 to 2.4 ms."
    )
    return DraftTable(origin=_origin(plan.drafter.sources(), note), rows=rows)


def _band(plan: Plan) -> str:
    band = (
        "low_s is 10 % below the sum of kernel times. high_s is 25 % above it, since gaps between "
        "kernels and waiting for other GPUs are missing"
    )
    if plan.composition.sparse is None:
        return f"{band}. Both are assumed."
    return (
        f"{band}, joined in quadrature with the excess of independently routed tokens. Both are "
        f"assumed. Beyond {MISFIT_TOKENS} tokens both ends join in quadrature the most by which a "
        f"published row lies off the sparse layers' fit, {100 * plan.misfit:.0f} % of their time."
    )


def _times(plan: Plan, load: Load) -> list[tuple[float, float, float]]:
    """Time with its interval [s], in four digits."""
    times = step_s(plan.composition, load)
    excess = np.maximum(0, step_s(plan.upper, load) / times - 1)
    off = plan.misfit * plan.composition.sparse_s(load) / times * (load.tokens > MISFIT_TOKENS)
    low = times * (1 - np.hypot(SHORTER, off))
    high = times * (1 + np.hypot(np.hypot(LONGER, excess), off))
    columns = (times, low, high)
    return [(_digits(t), _digits(lo), _digits(hi)) for t, lo, hi in zip(*columns, strict=True)]


def _power_w(by_tokens: dict[int, float], tokens: Array) -> list[float]:
    """Power of a GPU [W], straight in the logarithm of the tokens, level outside."""
    knots = np.log2(list(by_tokens))
    part = np.interp(np.log2(tokens), knots, list(by_tokens.values()))
    return [round(float(watts)) for watts in TDP_W * part]


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _origin(sources: Sequence[Source], note: str) -> Origin:
    return Origin(
        kind="composed",
        machine="H200-SXM, by NVIDIA's tables",
        versions={"aiconfigurator-core": "0.12.0", "vllm": "0.24.0"},
        sources=(*sources, H200),
        note=note,
    )
