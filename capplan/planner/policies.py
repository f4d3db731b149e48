"""Which draft length runs at which batch: plain, always, or by load."""

import numpy as np
from numpy.typing import NDArray

from capplan.errors import Complaint, InputError
from capplan.physics.surface import Array
from capplan.planner.capacity import Constraint, Curve
from capplan.planner.service import Replica
from capplan.records.service import DraftRange

_MOST_RANGES = 4


def curves(policy: str, replica: Replica, constraints: tuple[Constraint, ...]) -> list[Curve]:
    """Every way in which the policy could run, the simplest first.

    Args:
        policy: plain, always, always:N or by-load.
        replica: A replica with a drafter, or for plain one without.
        constraints: Its limits.

    Raises:
        InputError: always:N asks for a draft length that the profile does not cover.
    """
    if policy == "plain":
        return [Curve.of(replica, constraints, _constant(replica, 0), loaded=False)]
    tables = dict.fromkeys(_tables(policy, replica))
    return [Curve.of(replica, constraints, table, loaded=True) for table in tables]


def _tables(policy: str, replica: Replica) -> list[tuple[DraftRange, ...]]:
    lengths = replica.variants.draft_tokens[1:]
    if policy == "always":
        return [_constant(replica, length) for length in lengths if length > 0]
    if policy.startswith("always:"):
        return [_constant(replica, _asked(policy, replica))]
    variants = replica.variants
    # With spread between requests the length that emits most tokens need not be the one that
    # keeps a percentile: tables for the mean, for cautious and for unlucky requests, at the mix of
    # the busiest interval, and constants.
    mix = replica.load.busiest_mix()
    greedy = [
        _by_batch(replica, mix, tokens)
        for tokens in (
            variants.tokens_per_round,
            variants.cautious_tokens_per_round,
            variants.unlucky_tokens_per_round,
        )
    ]
    return greedy + [_constant(replica, length) for length in lengths]


def _asked(policy: str, replica: Replica) -> int:
    length = int(policy.removeprefix("always:"))
    known = [draft for draft in replica.variants.draft_tokens[1:] if draft > 0]
    if length not in known:
        raise InputError(
            [
                Complaint(
                    place="--policy",
                    key=policy,
                    rule=f"{replica.profile.name} covers draft lengths "
                    f"{', '.join(map(str, known))}",
                    found=str(length),
                )
            ]
        )
    return length


def _constant(replica: Replica, draft_tokens: int) -> tuple[DraftRange, ...]:
    largest = int(replica.batch[-1])
    return (DraftRange(from_batch=1, to_batch=largest, draft_tokens=draft_tokens),)


def _by_batch(replica: Replica, mix: int, tokens: Array) -> tuple[DraftRange, ...]:
    """At each batch the length that takes least time a token, in at most four ranges.

    Args:
        replica: The replica.
        mix: The mix of classes to serve.
        tokens: Tokens per round to count on. [V, J]
    """
    decode = replica.load.shares[mix] * replica.load.decode_tokens
    per_round = decode.sum() / (decode / tokens[1:]).sum(axis=1) if decode.any() else tokens[1:, 0]
    whole = replica.batch >= 1
    token_s = replica.unstretched_s[mix, 1:, whole].T / per_round[:, None]
    token_s = np.where(np.isnan(token_s), np.inf, token_s)
    best = _merged(np.argmin(token_s, axis=0), token_s)
    return _ranges(best, replica.batch[whole], replica.variants.draft_tokens[1:], token_s)


def _merged(best: NDArray[np.intp], token_s: Array) -> NDArray[np.intp]:
    """Fewer runs of equal choice: whichever costs least to give to a neighbour goes first."""
    best = best.copy()
    while len(runs := _runs(best)) > _MOST_RANGES:
        options = []
        for index, (first, last) in enumerate(runs):
            for neighbour in (index - 1, index + 1):
                if 0 <= neighbour < len(runs):
                    other = best[runs[neighbour][0]]
                    here = slice(first, last + 1)
                    loss = np.log(token_s[other, here] / token_s[best[first], here]).sum()
                    options.append((float(loss), first, last, int(other)))
        _, first, last, other = min(options)
        best[first : last + 1] = other
    return best


def _runs(best: NDArray[np.intp]) -> list[tuple[int, int]]:
    starts = [0, *(np.flatnonzero(np.diff(best)) + 1).tolist()]
    return list(zip(starts, [*(start - 1 for start in starts[1:]), len(best) - 1], strict=True))


def _ranges(
    best: NDArray[np.intp], batch: Array, lengths: tuple[int, ...], token_s: Array
) -> tuple[DraftRange, ...]:
    ranges: list[DraftRange] = []
    for first, last in _runs(best):
        start = ranges[-1].to_batch + 1 if ranges else 1
        # Between two points of the grid the switch lies half way, unless the first length was not
        # measured any further.
        ends = last + 1 == len(batch) or np.isinf(token_s[best[first], last + 1])
        end = batch[last] if ends else (batch[last] + batch[last + 1]) / 2
        if int(end) >= start:
            ranges.append(
                DraftRange(from_batch=start, to_batch=int(end), draft_tokens=lengths[best[first]])
            )
    return tuple(ranges)
