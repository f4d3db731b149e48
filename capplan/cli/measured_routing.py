"""How tokens choose experts, from what `capplan profile routing` kept."""

from pathlib import Path

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.files.reader import read
from capplan.physics import experts
from capplan.physics.overlaps import routing_by_lag
from capplan.records.architecture import Architecture, Moe
from capplan.records.routing import Routing, WorkloadRouting


def measured_routing(file: str, model: Architecture, draft_tokens: int) -> experts.Routing:
    """Overlaps of one workload, the mean over the layers.

    Args:
        file: `FILE`, or `FILE:WORKLOAD` where it holds several.
        model: The model that is composed.
        draft_tokens: Most drafts that are verified: so far apart lie two tokens of a sequence.

    Raises:
        InputError: The file does not hold what is needed.
    """
    path, _, workload = file.partition(":")
    found = read(Path(path), Routing)
    shape = _experts(model, path)
    chosen = (found.experts_per_token, found.experts)
    if chosen != (shape.experts_per_token, shape.experts):
        rule = f"{model.name} chooses {shape.experts_per_token} of {shape.experts} experts"
        raise _refused(path, "experts", rule, "{} of {}".format(*chosen))
    across, overlap = _means(_workload(found, path, workload))
    if len(overlap) < draft_tokens:
        rule = f"verifying {draft_tokens} drafts needs overlaps at lags up to {draft_tokens}"
        raise _refused(path, "overlap", rule, str(len(overlap)), "name fewer --draft-tokens")
    popular = max(across, shape.experts_per_token / shape.experts)
    routing = routing_by_lag(
        shape.experts, shape.experts_per_token, popular, overlap[:draft_tokens]
    )
    try:
        experts.distinct_experts(routing, 1, np.arange(1, draft_tokens + 2))
    except ValueError as error:
        raise _refused(path, "overlap", str(error), None) from error
    return routing


def _experts(model: Architecture, path: str) -> Moe:
    shapes = [kind.feed_forward for kind in model.layer_kinds if isinstance(kind.feed_forward, Moe)]
    if not shapes:
        raise _refused("--routing", "", f"{model.name} has no routed experts", path)
    return shapes[0]


def _workload(found: Routing, path: str, name: str) -> WorkloadRouting:
    if not name and len(found.workloads) == 1:
        return next(iter(found.workloads.values()))
    if name not in found.workloads:
        rule = f"must name a workload of {path}: {', '.join(found.workloads)}"
        raise _refused("--routing", "", rule, name or None, f"--routing {path}:NAME")
    return found.workloads[name]


def _means(workload: WorkloadRouting) -> tuple[float, tuple[float, ...]]:
    """Overlap across sequences and by lag, over all layers."""
    groups = workload.layer_groups.values()
    layers = [group.layers for group in groups]
    across = np.average([group.across for group in groups], weights=layers)
    overlap = np.average([group.overlap for group in groups], axis=0, weights=layers)
    return float(across), tuple(overlap.tolist())


def _refused(
    place: str, key: str, rule: str, found: str | None, remedy: str | None = None
) -> InputError:
    return InputError([Complaint(place, key, rule, found, remedy)])
