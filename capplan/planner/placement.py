"""Replicas to GPUs, whole nodes and whole racks."""

import math
from collections.abc import Iterable
from itertools import pairwise

from capplan.errors import Complaint, InfeasibleError, InputError
from capplan.records.fleet import Fleet, Node
from capplan.records.plan import Placement


def node_for(fleet: Fleet, gpu: str) -> Node:
    """The fleet's node that holds this GPU.

    Raises:
        InputError: The fleet has none.
    """
    for node in fleet.nodes.values():
        if node.gpu == gpu:
            return node
    held = ", ".join(sorted(node.gpu for node in fleet.nodes.values()))
    raise InputError(
        [
            Complaint(
                place=f"fleet {fleet.name}",
                key="nodes",
                rule=f"no node holds the GPU that the profile was made on, {gpu}",
                found=held,
                remedy="name a fleet with such nodes, or a profile for a GPU of this one",
            )
        ]
    )


def placement(replicas: Iterable[tuple[int, int]], fleet: Fleet, gpu: str) -> Placement:
    """Puts replicas on nodes and nodes in racks, at nameplate power.

    Args:
        replicas: Of each pool: how many, and how many GPUs one takes.
        fleet: The hardware.
        gpu: The kind that all of them run on.

    Raises:
        InputError: A replica does not divide into nodes.
        InfeasibleError: Not even one node may stand in a rack.
    """
    node = node_for(fleet, gpu)
    pools = list(replicas)
    wrong = sorted({g for _, g in pools if g > node.gpus and g % node.gpus})
    if wrong:
        raise InputError([_indivisible(fleet, node, gpus) for gpus in wrong])
    whole = sum(count * (gpus // node.gpus) for count, gpus in pools)
    part, unrounded = _shared([(c, g) for c, g in pools if g < node.gpus], node.gpus)
    nodes = whole + part
    per_rack = _nodes_per_rack(fleet, node)
    used = sum(count * gpus for count, gpus in pools)
    return Placement(
        gpus=nodes * node.gpus,
        gpus_in_replicas=used,
        gpus_stranded=nodes * node.gpus - used,
        nodes=nodes,
        nodes_unrounded=whole + unrounded,
        nodes_per_rack=per_rack,
        racks=math.ceil(nodes / per_rack),
        racks_unrounded=nodes / per_rack,
    )


def _shared(pools: list[tuple[int, int]], gpus: int) -> tuple[int, float]:
    """Nodes for replicas smaller than one, and unrounded.

    Sizes that divide one another fill nodes without gaps whatever pool they serve; others keep
    nodes of their own.
    """
    sizes = sorted({size for _, size in pools})
    if all(larger % smaller == 0 for smaller, larger in pairwise([*sizes, gpus])):
        unrounded = sum(count * size for count, size in pools) / gpus
        return math.ceil(unrounded), unrounded
    apart = [count / (gpus // size) for count, size in pools]
    return sum(math.ceil(nodes) for nodes in apart), sum(apart)


def _nodes_per_rack(fleet: Fleet, node: Node) -> int:
    rack = fleet.rack
    usable_w = rack.power_w * (1 - rack.reserve)
    by_power = math.floor(usable_w / node.nameplate_w + 1e-9)
    by_units = rack.units // node.rack_units
    if min(by_power, by_units) == 0:
        needs, has, least, what = (
            (node.nameplate_w, usable_w, node.nameplate_w / (1 - rack.reserve), "W")
            if by_power == 0
            else (node.rack_units, rack.units, node.rack_units, "units")
        )
        free = "" if rack.reserve == 0 else f" beside its reserve of {rack.reserve:.0%}"
        raise InfeasibleError(
            f"fleet {fleet.name}: a node needs {needs:g} {what} and a rack offers {has:g}{free}; "
            f"nearest feasible: a rack of {least:.6g} {what}"
        )
    return min(by_power, by_units)


def _indivisible(fleet: Fleet, node: Node, gpus_per_replica: int) -> Complaint:
    return Complaint(
        place=f"fleet {fleet.name}",
        key="nodes",
        rule=f"a replica of {gpus_per_replica} GPUs must fill whole nodes of {node.gpus}",
        found=f"{gpus_per_replica / node.gpus:g} nodes",
    )
