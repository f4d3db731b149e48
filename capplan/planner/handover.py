"""From engines that only process prompts to replicas that only decode: what lies between."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from capplan.errors import Complaint, InputError
from capplan.physics.engine import Engine, Outcome, Requests, Simulate, SimulateSplit
from capplan.physics.surface import Array
from capplan.planner.placement import node_for
from capplan.planner.surfaces import Surfaces
from capplan.records.fleet import Fleet
from capplan.records.profile import Profile


@dataclass(frozen=True)
class Handover:
    """What passes before a decode replica has a prompt's context, waits aside.

    Attributes:
        profile: Of the engines that process prompts.
        surfaces: Its times.
        transfer_s_per_token: Time for keys and values of one prompt token to travel, those of
            cached ones too. [s]
        transfer_s_per_sequence: The same for state that does not grow with the prompt. [s]
    """

    profile: Profile
    surfaces: Surfaces
    transfer_s_per_token: float
    transfer_s_per_sequence: float

    @classmethod
    def of(cls, prefill: Profile, decode: Profile, fleet: Fleet) -> Self:
        """Between two deployments of one model, each of its engines on nodes of its own.

        A context travels at the line rate of the slower end: the part of its nodes' network that
        belongs to the GPUs of one replica.

        Args:
            prefill: Of the engines that process prompts.
            decode: Of the replicas that decode.
            fleet: The hardware.

        Raises:
            InputError: The two do not fit together, or a node's network is not known.
        """
        complaints = [
            *_strangers(prefill, decode),
            *_unconnected(fleet, {profile.deployment.gpu for profile in (prefill, decode)}),
        ]
        if complaints:
            raise InputError(complaints)
        slower = min(_bytes_per_s(fleet, profile) for profile in (prefill, decode))
        return cls(
            profile=prefill,
            surfaces=Surfaces.of(prefill, None),
            transfer_s_per_token=decode.model.kv_bytes_per_token / slower,
            transfer_s_per_sequence=decode.memory.state_bytes_per_sequence / slower,
        )

    def transfer_s(self, prompt_tokens: ArrayLike) -> Array:
        """Time for a prompt's context to travel [s]."""
        tokens = np.asarray(prompt_tokens, dtype=float)
        return tokens * self.transfer_s_per_token + self.transfer_s_per_sequence

    def prefill_s(self, prefill_tokens: Array, cached_tokens: Array) -> Array:
        """What prompts take on an engine that does nothing else, chunk by chunk [s].

        Args:
            prefill_tokens: To process, at least 1.
            cached_tokens: Found in the cache. Same shape.
        """
        times = self.surfaces.prefill
        base = times.axes[1][0]
        most = min(float(self.profile.limits.max_batched_tokens), times.axes[0][-1])
        chunks = np.floor(prefill_tokens / most)
        rest = prefill_tokens - chunks * most
        rest_s = np.where(rest > 0, times.at(times.clamped(0, rest), base), 0.0)
        chunk = np.minimum(prefill_tokens, most)
        before = cached_tokens + (prefill_tokens - chunk) / 2
        own_s = self.surfaces.own_context_s(prefill_tokens, chunk, before)
        return np.asarray(chunks * times.at(most, base) + rest_s + own_s)

    def engine(self) -> Engine:
        """A prefill engine for a simulation: what chunks take alone; nothing of it decodes."""
        times = self.surfaces.prefill
        # A chunk below the smallest measured takes as long as that.
        tokens = np.union1d([0.0, 1.0], times.axes[0])
        alone = np.where(tokens > 0, times.at(times.clamped(0, tokens), times.axes[1][0]), 0.0)
        cached_tokens, own_s = self.surfaces.own_knots()
        return Engine(
            draft_tokens=np.zeros(1, dtype=np.int64),
            variant_by_batch=np.zeros(1, dtype=np.int64),
            context_tokens=np.zeros(1),
            step_s=np.zeros((1, 1, 1)),
            draft_s=np.zeros((1, 1)),
            chunk_tokens=tokens,
            chunk_s=alone[None, None],
            own_tokens=times.axes[0],
            own_cached_tokens=cached_tokens,
            own_s=own_s,
            max_batched_tokens=self.profile.limits.max_batched_tokens,
            cache_tokens=self.profile.memory.kv_capacity_tokens,
        )


def behind_prefill(handover: Handover, simulate_split: SimulateSplit) -> Simulate:
    """Decode replicas whose prompts find a free prefill engine, in the way that replicas run.

    Trials search the last rate of such a replica as of any other.
    """
    prefill = handover.engine()

    def run(engine: Engine, requests: Requests, rate_per_s: float) -> Outcome:
        transfer_s = handover.transfer_s(requests.prefill_tokens + requests.cached_tokens)
        return simulate_split(prefill, engine, requests, rate_per_s, None, transfer_s)

    return run


def _strangers(prefill: Profile, decode: Profile) -> list[Complaint]:
    """Contexts of another model, or kept in another way, are of no use."""
    pairs = (
        ("model.name", prefill.model.name, decode.model.name),
        (
            "deployment.kv_precision",
            prefill.deployment.kv_precision,
            decode.deployment.kv_precision,
        ),
    )
    return [
        Complaint(
            place=f"profile {prefill.name}",
            key=key,
            rule=f"must be that of {decode.name}, which gets its contexts, {wanted}",
            found=found,
        )
        for key, found, wanted in pairs
        if found != wanted
    ]


def _unconnected(fleet: Fleet, gpus: set[str]) -> list[Complaint]:
    return [
        Complaint(
            place=f"fleet {fleet.name}",
            key=f"nodes.{name}.network_bytes_per_s",
            rule="must be known where prefill and decoding have engines of their own",
            remedy="give the node's bytes a second to other nodes, one way",
        )
        for name, node in fleet.nodes.items()
        if node.gpu in gpus and node.network_bytes_per_s is None
    ]


def _bytes_per_s(fleet: Fleet, profile: Profile) -> float:
    """A replica's part of its nodes' network [bytes/s]."""
    node = node_for(fleet, profile.deployment.gpu)
    assert node.network_bytes_per_s is not None
    return node.network_bytes_per_s / node.gpus * profile.deployment.gpus_per_replica
