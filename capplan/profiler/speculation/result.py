"""Counts of requests become an acceptance table that says how it came about."""

import math
from collections.abc import Sequence

import numpy as np

from capplan.physics.request_spread import bootstrap_shares, per_request_sd
from capplan.records.acceptance import Acceptance, RequestCounts, RequestTable
from capplan.records.caveat import Origin


def acceptance(
    counts: Sequence[RequestCounts], temperature: float, seed: int, origin: Origin
) -> Acceptance:
    """Sums requests and takes spread and interval from them.

    Args:
        counts: Of two requests or more, all with as many positions.
        temperature: At which the target decoded.
        seed: Of the bootstrap's draws.
        origin: How the counts came about.
    """
    rounds = np.array([request.rounds for request in counts])
    accepted = np.array([request.accepted for request in counts])
    share = accepted.sum(axis=0) / rounds.sum()
    interval = bootstrap_shares(rounds, accepted, seed)
    return Acceptance(
        rounds=int(rounds.sum()),
        drafted_rounds=sum(request.drafted_rounds for request in counts),
        accepted=tuple(map(int, accepted.sum(axis=0))),
        low_share=tuple(_down(value) for value in np.minimum(interval.low, share)),
        high_share=tuple(_up(value) for value in np.maximum(interval.high, share)),
        per_request_sd=round(per_request_sd(rounds, accepted), 4),
        temperature=temperature,
        origin=origin,
        requests=RequestTable(rows=tuple(counts)),
    )


def _down(value: float) -> float:
    """Away from the middle, in digits that are worth keeping."""
    return math.floor(value * 1e4) / 1e4


def _up(value: float) -> float:
    return min(math.ceil(value * 1e4) / 1e4, 1.0)
