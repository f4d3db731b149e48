"""Where decoding on a set of GPUs turns compute-bound, part by part."""

from typing import Final

from capplan.physics.cache_reads import cache_read
from capplan.physics.parameters import expert_parameters
from capplan.physics.precision import arithmetic, flop_per_s, formats
from capplan.physics.ridge import PerSequence, Weights, ridge_batch
from capplan.physics.sharding import parameters_on_gpu
from capplan.planner.setup import Setup
from capplan.records.anatomy import Ridge
from capplan.records.architecture import Moe
from capplan.records.stored import Precision

DENSE: Final = ("attention", "dense", "shared_experts", "router", "head")
NO_RATE: Final = "the fleet gives no bandwidth, or no rate of arithmetic, for this"
WHOLE_STEP: Final = "whole step, cache and all"


def ridges(setup: Setup) -> tuple[Ridge, ...]:
    """Batch at which arithmetic takes as long as reading, by part of a step and for all of it."""
    dense, sparse = _dense(setup), _experts(setup)
    rows = [_row(setup, "dense matrices", dense, _DENSE_REASON)]
    if _moe(setup):
        rows.append(_row(setup, "routed experts", sparse, _expert_reason(setup)))
    both = None if dense is None or sparse is None else [*dense, *sparse]
    own = _sequence(setup)
    rows.append(_attention(setup, own))
    rows.append(_row(setup, WHOLE_STEP, None if own is None else both, _WHOLE_REASON, own))
    return tuple(rows)


_DENSE_REASON: Final = "width x FLOP/s / (2 x bandwidth), whatever the matrix"
_WHOLE_REASON: Final = "each sequence brings its own cache to read"


def _expert_reason(setup: Setup) -> str:
    rules = {(moe.experts_per_token, moe.experts) for _, moe in _moe(setup)}
    chosen = ", ".join(f"{k} of {n}" for k, n in sorted(rules))
    return f"{chosen}: an expert meets that part of the tokens"


def _row(
    setup: Setup,
    part: str,
    weights: list[Weights] | None,
    reason: str,
    sequence: PerSequence | None = None,
) -> Ridge:
    bandwidth = setup.gpu.bandwidth_bytes_per_s
    if weights is None or bandwidth is None:
        return Ridge(part=part, batch=None, batch_with_drafter=None, reason=NO_RATE)
    batch = ridge_batch(weights, bandwidth, 1, sequence)
    drafted = None
    if setup.drafter is not None:
        drafted = ridge_batch(weights, bandwidth, setup.draft_tokens + 1, sequence)
    return Ridge(part=part, batch=batch, batch_with_drafter=drafted, reason=reason)


def _attention(setup: Setup, own: PerSequence | None) -> Ridge:
    bandwidth, part = setup.gpu.bandwidth_bytes_per_s, "attention over the cache"
    if own is None or bandwidth is None or own.read_bytes == 0:
        return Ridge(part=part, batch=None, batch_with_drafter=None, reason=NO_RATE)
    intensity = own.flop_per_token / own.read_bytes
    ridge = own.flop_per_s / bandwidth
    bound = "reading" if intensity < ridge else "arithmetic"
    reason = f"bound by {bound} at any batch: {intensity:.0f} FLOP a byte, ridge {ridge:.0f}"
    return Ridge(part=part, batch=None, batch_with_drafter=None, reason=reason)


def _sequence(setup: Setup) -> PerSequence | None:
    """Attention computes in 16 bits."""
    rate = setup.gpu.bf16_flop_per_s
    if rate is None:
        return None
    read = cache_read(setup.kinds, setup.context_tokens, setup.kv_bytes_per_value)
    tensor = setup.split.tensor
    return PerSequence(tensor * read.read_bytes, tensor * read.flop, rate)


def _dense(setup: Setup) -> list[Weights] | None:
    counted, split = parameters_on_gpu(setup.architecture, setup.split), setup.split
    narrowed = formats(setup.stored)
    found = []
    for part in DENSE:
        parameters = getattr(counted, part)
        if part == "head" and setup.architecture.tied_embeddings:
            parameters += counted.embedding
        rate = _rate(setup, narrowed.get(part, "bf16"))
        if parameters and rate is None:
            return None
        if parameters and rate is not None:
            size = parameters * getattr(setup.stored, part) / 8
            found.append(Weights(split.gpus * size, 2 * split.tensor * parameters, rate))
    return found


def _experts(setup: Setup) -> list[Weights] | None:
    rate = _rate(setup, formats(setup.stored)["routed_experts"])
    hidden = setup.architecture.hidden_size
    found = []
    for layers, moe in _moe(setup):
        if rate is None:
            return None
        one = layers * expert_parameters(moe, hidden)
        size = one * moe.experts * setup.stored.routed_experts / 8
        chosen = moe.experts_per_token
        found.append(Weights(size, 2 * chosen * one, rate, moe.experts, chosen))
    return found


def _moe(setup: Setup) -> list[tuple[int, Moe]]:
    kinds = setup.architecture.layer_kinds
    return [(kind.layers, ff) for kind in kinds if isinstance(ff := kind.feed_forward, Moe)]


def _rate(setup: Setup, precision: Precision) -> float | None:
    computed = arithmetic(precision, setup.gpu)
    return None if computed is None else flop_per_s(computed, setup.gpu)
