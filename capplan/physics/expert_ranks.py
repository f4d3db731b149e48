"""The GPU that waits for nobody: the most loaded rank where GPUs share the experts out.

A layer ends when its slowest rank does. Experts lie on ranks without regard to popularity, so a
rank's distinct experts and its tokens scatter around an even share, and the largest of them lies
above it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from capplan.physics.experts import Routing, distinct_experts, popularity_nodes
from capplan.physics.load import Load
from capplan.physics.surface import Array


@dataclass(frozen=True)
class BusiestRank:
    """What the most loaded rank is to do in one layer, arrays of the load's shape."""

    distinct: Array
    """Experts of it that get tokens."""
    rows: Array
    """Tokens that they get, each counted once an expert."""


def busiest_rank(routing: Routing, load: Load, ranks: int) -> BusiestRank:
    """The largest of the ranks' distinct experts and of their tokens, as expectations.

    Ranks are drawn as if experts were dealt to them at random and stayed there: no copies of
    popular experts, no placement by load. Sums over a rank's experts are taken as normal, so ranks
    of a handful of experts are described roughly.

    Args:
        routing: How tokens choose.
        load: The step.
        ranks: GPUs that share the experts, a divisor of their count.

    Raises:
        ValueError: The experts cannot be shared out evenly.
    """
    if routing.experts % ranks:
        raise ValueError(f"{ranks} GPUs cannot share {routing.experts} experts evenly")
    distinct = distinct_experts(routing, load.batch, load.query_tokens, load.prefill_tokens)
    even = distinct / ranks
    rows = load.tokens * routing.experts_per_token / ranks
    if ranks == 1:
        return BusiestRank(even, rows)
    size = routing.experts / ranks
    # Dealing without putting back: a rank's sum scatters less than that of as many free draws.
    dealt = size * (1 - size / routing.experts) * routing.experts / (routing.experts - 1)
    above = largest_normal(ranks)
    touched = distinct / routing.experts
    most = np.minimum(even + above * np.sqrt(dealt * touched * (1 - touched)), size)
    chance, weight = popularity_nodes(routing)
    popular = weight @ (chance - routing.density) ** 2
    variance = _luck(routing, load) + load.tokens**2 * popular
    crowded = rows + above * np.sqrt(dealt * variance)
    return BusiestRank(
        most, np.minimum(crowded, load.tokens * min(size, routing.experts_per_token))
    )


def _luck(routing: Routing, load: Load) -> Array:
    """Variance of one expert's tokens beside its popularity: sequences that like it or not."""
    free = load.tokens * routing.density * (1 - routing.across)
    pairs = load.batch * load.query_tokens * np.maximum(load.query_tokens - 1, 0)
    return np.asarray(free + pairs * routing.density * (routing.within - routing.across))


def largest_normal(draws: int) -> float:
    """Expectation of the largest of independent standard normal draws.

    Source:
        E[max] = ∫ (1 − Φ(x)ⁿ − Φ(−x)ⁿ) dx over x > 0; David and Nagaraja, "Order Statistics", 2003.

    >>> round(largest_normal(2), 4)
    0.5642
    """
    grid = np.linspace(0, 10, 4001)
    below = ndtr(grid) ** draws
    return float(np.trapezoid(1 - below - ndtr(-grid) ** draws, grid))
