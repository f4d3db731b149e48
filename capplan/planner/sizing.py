"""Rates and a replica's capacity to replicas; the only place where replicas are rounded."""

import math

import numpy as np

from capplan.physics.surface import Array
from capplan.planner.load import Load
from capplan.records.fleet import Rules
from capplan.records.plan import Sizing

_EXACT = 1e-9
"""Floating noise that must not buy a replica."""


def unrounded(
    load: Load, capacity_per_s: Array, peak_minute_over_mean: float, rules: Rules
) -> Array:
    """Replicas of each interval before rounding, headroom included. [intervals]."""
    usable = capacity_per_s[load.mix_of_interval] * (1 - rules.headroom)
    asked = load.rate_per_s * peak_minute_over_mean
    # No number of replicas serves a mix of which one replica serves nothing.
    return np.divide(asked, usable, out=np.where(asked > 0, np.inf, 0.0), where=usable > 0)


def whole(unrounded: float, rules: Rules) -> int:
    """Replicas that serve an interval."""
    return max(math.ceil(unrounded - _EXACT), rules.min_replicas)


def sizing(load: Load, capacity_per_s: Array, peak_minute_over_mean: float, rules: Rules) -> Sizing:
    """Replicas of each interval, and those that must be bought.

    Args:
        load: Rates and mixes.
        capacity_per_s: Highest rate of one replica, by mix, none of them nought. [mixes]
        peak_minute_over_mean: Busiest minute over its interval's mean.
        rules: Headroom, spares, minimum.
    """
    exact = unrounded(load, capacity_per_s, peak_minute_over_mean, rules)
    needed = [whole(value, rules) for value in exact]
    peak = int(np.argmax(exact))
    return Sizing(
        unrounded_by_interval=tuple(exact.tolist()),
        replicas_by_interval=tuple(needed),
        peak_interval=peak,
        peak_rate_per_s=float(load.rate_per_s[peak]) * peak_minute_over_mean,
        replicas_at_peak=needed[peak],
        spare_replicas=rules.spare_replicas,
        replicas=needed[peak] + rules.spare_replicas,
    )
