"""A composed deployment as a whole profile, every number with its origin."""

from dataclasses import dataclass
from typing import Final

from capplan.composer import caveats as said
from capplan.composer.asked import Asked
from capplan.composer.band import Band, band
from capplan.composer.drafter import drafter_of, key_of
from capplan.composer.grid import MAX_BATCHED_TOKENS, Grid, grid_of
from capplan.composer.room import Room, room
from capplan.composer.tabulate import Tabulated
from capplan.composer.wanted import Wanted
from capplan.errors import InfeasibleError
from capplan.physics import memory
from capplan.physics.operators import Silicon
from capplan.physics.parameters import count_parameters
from capplan.physics.sharding import Split, broken_rules
from capplan.records.caveat import Origin, Source
from capplan.records.profile import (
    Deployment,
    IdlePower,
    Limits,
    Memory,
    Profile,
    ProfiledModel,
    Tail,
)

RESERVE: Final = Source(
    what="3.5 GiB for activations and 392 MiB for communication a GPU",
    where="NVIDIA aiconfigurator-core 0.12.0, systems/h200_sxm.yaml",
    licence="Apache-2.0",
)


@dataclass(frozen=True)
class ComposedProfile:
    """A profile with what it was read off, for tables that a profile has no place for."""

    profile: Profile
    band: Band
    grid: Grid
    room: Room


def composed_profile(wanted: Wanted, tables: Silicon) -> ComposedProfile:
    """Composes a deployment and tabulates it.

    Args:
        wanted: The deployment, its GPU's memory and power, a drafter.
        tables: Operator times of its GPU and engine.

    Raises:
        InputError: The model cannot be split so, or an operator has no table.
        InfeasibleError: The weights do not fit.
    """
    asked = wanted.asked
    found = band(asked, tables)
    held = room(asked.model, wanted.stored, asked.split, asked.cache, wanted.gpu.memory_bytes)
    if not held.weights_fit:
        raise InfeasibleError(_too_large(wanted, held))
    grid = grid_of(found.middle, held.capacity_tokens, wanted.draft_tokens, coarse=wanted.coarse)
    drafter, refused = drafter_of(wanted, tables, grid)
    tabulated = Tabulated(found, grid, asked.gpu, wanted.gpu.tdp_w, wanted.versions).tables()
    counted = count_parameters(asked.model)
    profile = Profile(
        version=1,
        name=name_of(asked),
        model=ProfiledModel(
            name=asked.model.name,
            parameters_total=float(counted.total),
            parameters_active=float(counted.active),
            kv_bytes_per_token=held.kv_bytes_per_token,
        ),
        deployment=_deployment(wanted, grid.batches[-1]),
        origin=Origin(
            kind="composed",
            date=wanted.date,
            machine=f"{asked.gpu} as in NVIDIA's tables; not run as a whole",
            versions=wanted.versions,
            note="Composed by capplan; each table names the rows it rests on.",
        ),
        steps=tabulated.steps,
        mixed=tabulated.mixed,
        prefill=tabulated.prefill,
        drafters={} if drafter is None else {key_of(wanted): drafter},
        memory=_memory(wanted, held),
        limits=Limits(max_batch=grid.batches[-1], max_batched_tokens=MAX_BATCHED_TOKENS),
        power=IdlePower(
            idle_w=wanted.gpu.idle_w,
            origin=Origin(kind="assumed", note=f"The fleet's: {wanted.gpu.sources['idle_w']}"),
        ),
        tail=Tail(
            tpot_p99_over_mean={"plain": said.TAIL, "speculative": said.TAIL},
            origin=Origin(kind="assumed", note=said.TAIL_NOTE),
        ),
        caveats=said.caveats(wanted, found.middle, drafter, refused),
    )
    return ComposedProfile(profile, found, grid, held)


def _too_large(wanted: Wanted, held: Room) -> str:
    asked, gpu_bytes = wanted.asked, wanted.gpu.memory_bytes
    kinds = asked.model.layer_kinds
    larger = (Split(gpus, gpus) for gpus in (2, 4, 8, 16, 32, 64) if gpus > asked.split.gpus)
    enough = (
        split.gpus
        for split in larger
        if not broken_rules(kinds, split)
        and room(asked.model, wanted.stored, split, asked.cache, gpu_bytes).weights_fit
    )
    nearest = next(enough, None)
    remedy = "no layout of up to 64 does" if nearest is None else f"nearest feasible: tp{nearest}"
    return (
        f"{asked.model.name}: weights do not fit: {held.weights_bytes / 1e9:.1f} GB on each of "
        f"{asked.split.gpus} x {asked.gpu}, which have {held.usable_bytes / 1e9:.1f} GB; {remedy}"
    )


def layout_name(split: Split) -> str:
    """Such as tp8, tp8-ep8, tp1-ep8-dp8."""
    parts = [f"tp{split.tensor}"]
    if split.expert > 1:
        parts.append(f"ep{split.expert}")
    if split.copies > 1:
        parts.append(f"dp{split.copies}")
    return "-".join(parts)


def name_of(asked: Asked) -> str:
    """What the profile is called, as its file."""
    precision = asked.experts or asked.weights
    parts = (asked.model.name, precision.replace("_", "-"), layout_name(asked.split), asked.engine)
    return "-".join(parts)


def _deployment(wanted: Wanted, max_batch: int) -> Deployment:
    asked = wanted.asked
    return Deployment(
        gpu=asked.gpu,
        gpus_per_replica=asked.split.gpus,
        parallelism=layout_name(asked.split),
        weight_precision=wanted.stored.scheme,
        kv_precision=asked.cache,
        engine=asked.engine,
        version=wanted.versions.get(asked.engine, "as in the tables"),
        flags=_flags(asked, max_batch),
        graphs=True,
    )


def _flags(asked: Asked, max_batch: int) -> tuple[str, ...]:
    """What vLLM is to be started with; other engines' names differ."""
    if asked.engine != "vllm":
        return ()
    split = asked.split
    flags = [f"--tensor-parallel-size={split.tensor}"]
    if split.copies > 1:
        flags.append(f"--data-parallel-size={split.copies}")
    if split.expert > 1:
        flags.append("--enable-expert-parallel")
    return (*flags, f"--max-num-seqs={max_batch}", f"--max-num-batched-tokens={MAX_BATCHED_TOKENS}")


def _memory(wanted: Wanted, held: Room) -> Memory:
    gpu = wanted.gpu
    return Memory(
        kv_capacity_tokens=held.capacity_tokens,
        weights_bytes=wanted.asked.split.gpus * held.weights_bytes,
        state_bytes_per_sequence=held.state_bytes_per_sequence,
        origin=Origin(
            kind="estimated",
            sources=(
                Source(
                    what=f"memory of a GPU, {gpu.memory_bytes / 2**20:.0f} MiB",
                    where=gpu.sources["memory_bytes"],
                ),
                RESERVE,
            ),
            note=f"{memory.UTILISATION:.0%} of memory, less weights and "
            f"{memory.RESERVE_BYTES / 2**30:.1f} GiB a GPU.",
        ),
    )
