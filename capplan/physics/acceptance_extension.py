"""Tokens per round at draft lengths beyond those that were measured, with a stated error.

The chance that a draft is kept once all before it were drifts with the position: it falls as a
drafter compounds its mistakes and rises where only easy contexts survive. Neither the chance at
the first position nor that at the last holds further on, so the drift is carried on, halved at each
further position: what was seen once need not go on for ever.

Only for drafters that propose one token after another. Those that propose a block propose another
one at another length, and their tokens per round may even fall.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.acceptance import tokens_per_round
from capplan.physics.surface import Array

FEWEST_KNOWN: Final = 3
"""Positions that a drift can be told from."""
_DAMPING: Final = 0.5
_LEAST_ERROR: Final = 0.01
"""Published curves are printed to a hundredth of a token and repeat no better."""


@dataclass(frozen=True)
class Extended:
    """Acceptance carried on beyond the positions that were measured."""

    shares: Array
    """Part of rounds that keep each position, the measured ones first. [positions]"""
    error: Array
    """How far tokens per round may be off at each length from 0, over their value; nought where
    they were measured. Eight published curves and one of an engine's counters lie within it in
    nine of ten lengths. [positions + 1]"""


def extended_shares(shares: ArrayLike, positions: int) -> Extended:
    """Carries shares on to more positions.

    Args:
        shares: Part of rounds that keep position 1, 2, …, non-increasing, of three or more. [known]
        positions: How many are wanted; no fewer than are known.

    Raises:
        ValueError: Fewer than three positions are known, or fewer are wanted than are known.

    Source:
        The damped trend is that of Gardner and McKenzie, "Forecasting trends in time series",
        Management Science 31, 1985, on the logarithm of the conditional rates. The error is the
        largest, a position, that the same rule makes when it predicts the last known positions
        from those before.
    """
    known = np.asarray(shares, dtype=float)
    if len(known) < FEWEST_KNOWN:
        raise ValueError(f"extending acceptance needs three known positions, found {len(known)}")
    if positions < len(known):
        raise ValueError(f"{len(known)} positions are known already, asked for {positions}")
    further = positions - len(known)
    error = np.zeros(positions + 1)
    error[len(known) + 1 :] = _error_a_position(known) * np.arange(1, further + 1)
    return Extended(np.concatenate([known, _carried_on(known, further)]), error)


def _carried_on(known: Array, further: int) -> Array:
    """Shares of the positions that follow the known ones."""
    before = np.concatenate([[1.0], known[:-1]])
    reached = known > 0
    rates = np.log(known[reached] / before[reached])
    if len(rates) < 2:
        return np.zeros(further)
    places = np.arange(len(rates))
    # Late positions are reached by few rounds, so their rates are known the worst.
    drift, start = np.polyfit(places, rates, 1, w=np.sqrt(before[reached]))
    after = start + drift * (places[-1] + np.cumsum(_DAMPING ** np.arange(1, further + 1)))
    return np.asarray(known[-1] * np.cumprod(np.minimum(np.exp(after), 1.0)))


def _error_a_position(known: Array) -> float:
    found = [_LEAST_ERROR]
    for shown in range(2, len(known)):
        carried = np.concatenate([known[:shown], _carried_on(known[:shown], len(known) - shown)])
        right = tokens_per_round(known)[shown + 1 :]
        missed = np.abs(tokens_per_round(carried)[shown + 1 :] / right - 1)
        found.append(float(np.max(missed / np.arange(1, len(missed) + 1))))
    return max(found)


def extension_errors(tokens: ArrayLike, shown: int) -> Array:
    """Errors at the last lengths of a known curve, predicted from its first.

    Args:
        tokens: Tokens per round with 1, 2, … drafts, each length measured by itself. [lengths]
        shown: Lengths that the prediction may look at, three or more.

    Returns:
        Predicted over measured tokens per round, less one. [lengths - shown]
    """
    curve = np.asarray(tokens, dtype=float)
    # Lengths measured one by one scatter: a share can neither be negative nor rise.
    shares = np.minimum.accumulate(np.clip(np.diff(curve[:shown], prepend=1.0), 0.0, 1.0))
    carried = curve[shown - 1] + np.cumsum(_carried_on(shares, len(curve) - shown))
    return np.asarray(carried / curve[shown:] - 1)
