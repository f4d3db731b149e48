"""A replica at one rate, in the words of a plan."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics import drafting
from capplan.physics.surface import Array
from capplan.planner.capacity import Curve
from capplan.planner.latencies import Estimates, felt
from capplan.records.plan import Demand
from capplan.records.service import LatencyEstimate, OperatingPoint


@dataclass(frozen=True)
class Observed:
    """What a simulation at the rate saw.

    Attributes:
        batch: Mean sequences decoding.
        tpot_mean_s: Decoding time over tokens after the first.
        latencies: Every percentile that a plan shows.
    """

    batch: float
    tpot_mean_s: float
    latencies: tuple[LatencyEstimate, ...]


def operating_point(
    curve: Curve,
    demand: Demand,
    estimates: Estimates,
    mix: int,
    rate_per_s: float,
    observed: Observed | None = None,
) -> OperatingPoint:
    """A replica at a rate that the curve reaches: in balance, or at the batch that was observed.

    Args:
        curve: The replica under its policy.
        demand: For the classes' objectives.
        estimates: Of the curve's replica.
        mix: Which mix of classes.
        rate_per_s: Requests a second at this replica; at most the curve's capacity. [1/s]
        observed: What a simulation saw, to show instead of the balance.
    """
    replica = curve.replica
    batch = float(batch_at(curve, mix, rate_per_s)) if observed is None else observed.batch

    def here(values: Array) -> float:
        return between(curve, mix, batch, values)

    variant = variant_at(curve, batch)
    draft_tokens = replica.variants.draft_tokens[variant]
    context = float(replica.context_tokens[mix, variant])
    decode_s = float(replica.surfaces.step_s(batch, context, 1))
    query = float(replica.query_tokens[mix, variant])
    verify_s = float(replica.surfaces.step_s(batch, context, query))
    part = float(replica.drafting[mix, variant])
    draft_s = float(replica.surfaces.draft_s(batch, draft_tokens, part))
    tokens = float(replica.tokens_per_round[mix, variant])
    round_s = here(replica.round_s)
    share = replica.load.shares[mix]
    edge = float(drafting.break_even_target_efficiency(decode_s, draft_s, tokens))
    return OperatingPoint(
        rate_per_s=rate_per_s,
        batch=batch,
        context_tokens=context,
        draft_tokens=draft_tokens,
        tokens_per_round=tokens,
        target_efficiency=float(drafting.target_efficiency(decode_s, verify_s)),
        decode_s=decode_s,
        verify_s=verify_s,
        draft_s=draft_s,
        round_s=round_s,
        prefill_share=min(max(1 - here(replica.unstretched_s) / round_s, 0.0), 1.0),
        tpot_mean_s=round_s / tokens if observed is None else observed.tpot_mean_s,
        output_tokens_per_s=rate_per_s * float(share @ replica.load.output_tokens),
        break_even_tokens_per_round=float(
            drafting.break_even_tokens_per_round(decode_s, verify_s + draft_s)
        ),
        break_even_target_efficiency=edge if np.isfinite(edge) else None,
        speed_up_at_batch=float(drafting.speed_up(decode_s, verify_s + draft_s, tokens)),
        latencies=_latencies(curve, demand, estimates, mix, batch)
        if observed is None
        else observed.latencies,
    )


def batch_at(curve: Curve, mix: int, rate_per_s: ArrayLike) -> Array:
    """Mean batch that balances each rate; the larger one where there are two."""
    balance = curve.balance_per_s[mix]
    known = np.isfinite(balance)
    wanted = np.asarray(rate_per_s, dtype=float)
    rates, batches = [0.0, *balance[known]], [0.0, *curve.replica.batch[known]]
    return np.asarray(np.interp(wanted, rates, batches))


def variant_at(curve: Curve, batch: float) -> int:
    """Which variant runs at a mean batch."""
    return int(curve.variant[np.abs(curve.replica.batch - max(batch, 1.0)).argmin()])


def _latencies(
    curve: Curve, demand: Demand, estimates: Estimates, mix: int, batch: float
) -> tuple[LatencyEstimate, ...]:
    """Those that a class of the mix has, but for waits without end."""
    return tuple(
        LatencyEstimate(
            traffic_class=demand.classes[place].name,
            quantity=quantity,
            value_s=value_s,
            objective_s=demand.classes[place].objectives.get(quantity),
        )
        for (place, quantity), values in estimates.items()
        if felt(curve.replica.load, place, quantity)[mix]
        and np.isfinite(value_s := between(curve, mix, batch, values))
    )


def between(curve: Curve, mix: int, batch: float, values: Array) -> float:
    """Values of a mix at a batch; the batch below answers where the next has no finite value.

    Args:
        curve: Which variant runs at each batch.
        mix: Which mix.
        batch: Where to read.
        values: [M, V, B]
    """
    grid, line = curve.replica.batch, curve.follow(values)[mix]
    below = max(int(np.searchsorted(grid, batch * (1 + 1e-9), side="right")) - 1, 0)
    above = below + 1
    if above == len(grid) or not np.isfinite(line[above]):
        return float(line[below])
    return float(np.interp(batch, grid[below : above + 1], line[below : above + 1]))
