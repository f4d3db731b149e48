"""Where a plan's operating point stands close to something that means would step over."""

import math
from dataclasses import dataclass, replace

import numpy as np

from capplan.physics.roots import crossing
from capplan.planner import latencies
from capplan.planner.capacity import Curve, largest_measured
from capplan.planner.operating_point import batch_at, between, variant_at
from capplan.planner.prefill import Prefill
from capplan.records.caveat import Caveat

_STARVED = 0.80
"""Share of the prompt tokens that get through, from which prompts begin to queue for long."""
_BUSY = 0.95
_CLOSE = 0.90
"""Part of the largest measured batch from which little is left on its far side."""
_FULL = 0.95


def hazards(curve: Curve, mix: int, rate_per_s: float) -> list[Caveat]:
    """Everything at one rate that would make its numbers fragile, with what it comes to.

    Args:
        curve: The replica under its policy.
        mix: Which mix of classes.
        rate_per_s: Requests a second at one replica. [1/s]
    """
    batch = float(batch_at(curve, mix, rate_per_s))
    at = _Point(curve, mix, rate_per_s, batch, variant_at(curve, batch))
    found = {
        "balance": _several_balances(at),
        "prefill": _starved_prompts(at),
        "utilisation": _saturation(at),
        "batch": _end_of_batches(at),
        "context": _end_of_contexts(at),
        "memory": _full_cache(at),
    }
    return [Caveat(about=about, text=text) for about, text in found.items() if text is not None]


@dataclass(frozen=True)
class _Point:
    """A replica at one rate, at the batch that is planned on.

    Attributes:
        variant: Which one runs there.
    """

    curve: Curve
    mix: int
    rate_per_s: float
    batch: float
    variant: int

    @property
    def query_tokens(self) -> float:
        return float(self.curve.replica.query_tokens[self.mix, self.variant])

    @property
    def highest(self) -> tuple[float, float]:
        """The most that any batch balances, and that batch; noughts where none is known. [1/s]."""
        balance = self.curve.balance_per_s[self.mix]
        known = np.flatnonzero(np.isfinite(balance))
        if not len(known):
            return 0.0, 0.0
        return float(balance[known[-1]]), float(self.curve.replica.batch[known[-1]])


def _several_balances(at: _Point) -> str | None:
    """Where a rate that rises with the batch reaches this one: below more come than go, above less.

    Where the rate falls through this one, a batch a little larger grows: nothing stays there.
    """
    line = at.curve.rate_per_s[at.mix]
    known = np.isfinite(line)
    rates, grid = np.append(0.0, line[known]), np.append(0.0, at.curve.replica.batch[known])
    below = np.flatnonzero((rates[:-1] < at.rate_per_s) & (rates[1:] >= at.rate_per_s))
    if len(below) < 2:
        return None
    way = (at.rate_per_s - rates[below]) / (rates[below + 1] - rates[below])
    stable = grid[below] + way * (grid[below + 1] - grid[below])
    listed = " and ".join(f"{batch:.3g}" for batch in stable)
    largest = float(stable[-1])
    # Beyond the highest rate of all nothing is planned, however long a batch may stay there.
    rest = "the largest" if largest <= at.highest[1] else "and a burst can lead to the largest"
    return (
        f"{at.rate_per_s:.4g} requests/s keep batches of {listed} in balance; "
        f"{at.batch:.3g} is planned on, {rest}"
    )


def _starved_prompts(at: _Point) -> str | None:
    limit = at.curve.replica.profile.limits.max_batched_tokens
    share = _prompt_share(at, limit)
    if not share > _STARVED:  # nor where it is unknown
        return None
    taken = max(at.batch, 1.0) * at.query_tokens
    largest = taken + float(at.curve.replica.surfaces.increment.axes[3][-1])
    # One over the share: it stays finite where verification leaves next to nothing.
    enough = crossing(lambda tokens: 1 / _prompt_share(at, tokens) - 2, limit, largest)
    remedy = "no larger chunk that was measured would bring it to half"
    if enough is not None:
        remedy = f"max_batched_tokens of {math.ceil(enough):,} would bring it to half"
    doing = "verification" if at.query_tokens > 1 else "decoding"
    return (
        f"{doing} of {at.batch:.0f} sequences leaves prompts {limit - taken:,.0f} of a step's "
        f"{limit:,} tokens, and they need {100 * share:.0f} % of what gets through; {remedy}"
    )


def _prompt_share(at: _Point, max_batched_tokens: float) -> float:
    """Prompt tokens that come over those that get through, with the batch as it is."""
    replica = at.curve.replica
    limits = replica.profile.limits.model_copy(update={"max_batched_tokens": max_batched_tokens})
    profile = replica.profile.model_copy(update={"limits": limits})
    batch = np.array([at.batch])
    one = np.ones((1, len(replica.variants.draft_tokens), 1))
    with np.errstate(all="ignore"):
        there = replace(
            replica,
            profile=profile,
            load=replace(replica.load, shares=replica.load.shares[[at.mix]]),
            batch=batch,
            prefill=Prefill.of(
                profile,
                replica.load,
                replica.surfaces,
                replica.query_tokens,
                batch,
                replica.context_tokens,
            ),
            unstretched_s=one * between(at.curve, at.mix, at.batch, replica.unstretched_s),
            rate_per_s=one * at.rate_per_s,
        )
        return float(latencies.prefill_utilisation(there)[0, at.variant, 0])


def _saturation(at: _Point) -> str | None:
    highest, batch = at.highest
    if at.rate_per_s <= _BUSY * highest:
        return None
    most = f"the {highest:.4g} that the best measured batch, {batch:.0f}, serves"
    if at.rate_per_s > highest:
        return f"{at.rate_per_s:.4g} requests/s are more than {most}: the queue grows without end"
    part = 100 * at.rate_per_s / highest
    return (
        f"{at.rate_per_s:.4g} requests/s are {part:.3g} % of {most}: a little more has no balance"
    )


def _end_of_batches(at: _Point) -> str | None:
    largest = largest_measured(at.curve, at.mix)
    highest, batch = at.highest
    if at.rate_per_s > highest and 0 < largest <= batch:
        return f"{at.rate_per_s:.4g} requests/s need more than the largest measured, {largest}"
    if at.batch <= _CLOSE * largest:
        return None
    return f"{at.batch:.0f} sequences come within 10 % of the most that were measured, {largest}"


def _end_of_contexts(at: _Point) -> str | None:
    context = float(at.curve.replica.context_tokens[at.mix, at.variant])
    measured = at.curve.replica.surfaces.step.axes[1]
    held = f"a decoding sequence holds {context:,.0f} tokens on average"
    if context < measured[0]:
        return f"{held}; steps were measured from {measured[0]:,.0f}, whose times stand in"
    if context > measured[-1]:
        return f"{held}; steps were measured up to {measured[-1]:,.0f}: nothing is known there"
    return None


def _full_cache(at: _Point) -> str | None:
    limit = float(at.curve.replica.memory_limit[at.mix, at.variant])
    if max(at.batch, 1.0) <= _FULL * limit:
        return None
    return (
        f"{max(at.batch, 1.0):.3g} sequences against {limit:.3g} whose context, with room for its "
        "fluctuation, fits the KV cache: beyond them requests are preempted"
    )
