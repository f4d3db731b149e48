"""Whether weights and the longest request fit a replica: no number of replicas helps if not."""

import math

from capplan.errors import InfeasibleError
from capplan.physics import memory
from capplan.planner.placement import node_for
from capplan.records.fleet import Fleet
from capplan.records.plan import Demand
from capplan.records.profile import Profile


def check_weights(profile: Profile, fleet: Fleet) -> None:
    """A replica's weights must fit its GPUs.

    Raises:
        InputError: The fleet has no such GPU.
        InfeasibleError: They do not fit.
    """
    deployment = profile.deployment
    held = fleet.gpus[node_for(fleet, deployment.gpu).gpu].memory_bytes
    weights = profile.memory.weights_bytes
    if not memory.weights_fit(weights, deployment.gpus_per_replica, held):
        raise InfeasibleError(
            f"profile {profile.name}: weights of {weights:.4g} bytes do not fit "
            f"{deployment.gpus_per_replica} x {deployment.gpu} of {held:.4g} bytes; "
            f"nearest feasible: {memory.gpus_for_weights(weights, held)} GPUs a replica"
        )


def check_longest_request(profile: Profile, demand: Demand, room_tokens: float) -> None:
    """The longest prompt and answer must fit a replica that does nothing else: else it never ends.

    Args:
        profile: Of the replica.
        demand: The requests; at least one class asks for something.
        room_tokens: What the cache holds beside the drafts of one round. [tokens]

    Raises:
        InfeasibleError: They do not fit.
    """
    longest, name = max(
        (max(traffic.prompt_tokens) + max(traffic.output_tokens), traffic.name)
        for traffic in demand.classes
        if any(traffic.rate_per_s)
    )
    if longest > room_tokens:
        enough = math.ceil(profile.memory.kv_capacity_tokens + longest - room_tokens)
        raise InfeasibleError(
            f"profile {profile.name}: prompt and answer of {name} take up to {longest:,.0f} tokens "
            f"of cache and a replica holds {room_tokens:,.0f}; nearest feasible "
            f"kv_capacity_tokens: {enough:,}"
        )
