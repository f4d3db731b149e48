"""Rates and a replica's capacity to replicas; the only place where replicas are rounded."""

import math

import numpy as np

from capplan.physics.surface import Array
from capplan.planner.load import Load
from capplan.records.fleet import Rules
from capplan.records.plan import Sizing

_EXACT = 1e-9
"""Floating noise that must not buy a replica."""


def sizing(load: Load, capacity_per_s: Array, peak_minute_over_mean: float, rules: Rules) -> Sizing:
    """Replicas of each interval, and those that must be bought.

    Args:
        load: Rates and mixes.
        capacity_per_s: Highest rate of one replica, by mix, none of them nought. [mixes]
        peak_minute_over_mean: Busiest minute over its interval's mean.
        rules: Headroom, spares, minimum.
    """
    usable = capacity_per_s[load.mix_of_interval] * (1 - rules.headroom)
    unrounded = load.rate_per_s * peak_minute_over_mean / usable
    needed = [max(math.ceil(value - _EXACT), rules.min_replicas) for value in unrounded]
    peak = int(np.argmax(unrounded))
    return Sizing(
        unrounded_by_interval=tuple(unrounded.tolist()),
        replicas_by_interval=tuple(needed),
        peak_interval=peak,
        peak_rate_per_s=float(load.rate_per_s[peak]) * peak_minute_over_mean,
        replicas_at_peak=needed[peak],
        spare_replicas=rules.spare_replicas,
        replicas=needed[peak] + rules.spare_replicas,
    )
