"""Experts kept in host memory: which a step misses, and what fetching them takes.

The experts chosen least stay in host memory; a step that touches one of them waits for the link.
Nothing is fetched ahead, and nothing stays: the same expert is fetched again by the next step.
"""

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.experts import Routing, touched_by_node
from capplan.physics.surface import Array


def missed_experts(
    routing: Routing, host_share: float, batch: ArrayLike, query_tokens: ArrayLike
) -> Array:
    """Distinct experts of a step in one layer that lie in host memory.

    Args:
        routing: How tokens choose. Where no expert is more popular than another, as many are missed
            as chance has it.
        host_share: Part of the experts in host memory, those chosen least.
        batch: Sequences.
        query_tokens: Tokens of each. [tokens]

    Returns:
        Mean count, shape of the arguments broadcast.
    """
    chance, weight, touched = touched_by_node(routing, batch, query_tokens)
    order = np.argsort(chance)
    filled = np.cumsum(weight[order])
    in_host = np.clip(host_share - (filled - weight[order]), 0.0, weight[order])
    return np.asarray(routing.experts * touched[..., order] @ in_host)


def fetching_s(missed: ArrayLike, expert_bytes: float, link_bytes_per_s: float) -> Array:
    """Time that a layer waits for the experts it missed [s].

    Args:
        missed: Distinct experts, as `missed_experts` counts them. [...]
        expert_bytes: Of one expert on one GPU. [bytes]
        link_bytes_per_s: From host memory to one GPU.
    """
    return np.multiply(missed, expert_bytes / link_bytes_per_s)
