"""The two shipped profiles."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from capplan.files.reader import read
from capplan.physics.cache import kv_bytes_per_token
from capplan.physics.parameters import count_parameters, weights_bytes
from capplan.records.acceptance import Acceptance
from capplan.records.architecture import Architecture
from capplan.records.caveat import Caveat, Origin, Source
from capplan.records.profile import (
    Deployment,
    Drafter,
    IdlePower,
    Limits,
    Memory,
    Profile,
    ProfiledModel,
    Tail,
)
from composed import acceptance, caveats, deployments, silicon, tables
from composed.silicon import H200, SILICON
from composed.tables import Plan

MODELS = Path(__file__).parents[2] / "models"
DATE = dt.date(2026, 11, 30)

H200_BYTES = 143771 * 2**20
UTILISATION = 0.90
RESERVE_BYTES = 3758096384 + 411041792
MEMORY_SOURCES = (
    Source(what="H200 memory 143771 MiB", where="nvidia-smi, total memory as printed by H200-SXM"),
    H200.model_copy(update={"what": "3.5 GiB for activations and 392 MiB for NCCL a GPU"}),
)
MOE_POWER = {8: 0.63, 32: 0.67, 128: 0.70, 512: 0.79}
DENSE_POWER = {8: 0.65, 32: 0.74, 128: 0.84, 512: 0.90}
DENSE_GRID = (
    "Batches are powers of two and both sides of every published edge of the FP8 kernels' tiles, "
    "for 1 to 9 tokens a sequence. These steps are linear in the context: two suffice."
)
LOADED_IDLE_OVERHEAD = 0.03
IDLE_W = 120.0


@dataclass(frozen=True)
class Layout:
    """How one profile's model is laid out, and what it needs a token."""

    name: str
    deployment: Deployment
    architecture: Architecture
    weights_bytes: float
    kv_bytes_per_token: float
    """Over the replica's GPUs."""
    max_batch: int
    tail: tuple[float, str]
    """99th percentile over mean of the time a token, with its range, both assumed."""
    head: Drafter
    caveats: tuple[Caveat, ...]


def shipped() -> dict[str, Profile]:
    """The shipped profiles by file, below profiles/."""
    return {
        "h200-sxm/kimi-k2.5-int4-tp8.yaml": kimi(),
        "h200-sxm/llama-3.1-70b-fp8-tp4.yaml": llama(),
    }


def kimi() -> Profile:
    """Kimi-K2.5 with INT4 experts on 8 H200."""
    architecture = read(MODELS / "kimi-k2.5.yaml", Architecture)
    counted = count_parameters(architecture)
    replicated = 61 * 7168 * (1536 + 512 + 64) + counted.router
    plan = kimi_plan()
    head = _drafter(
        plan,
        "EAGLE-3, one layer: hidden 7168, 64 heads, width 12288, vocabulary 163840, bf16 on all 8 "
        "GPUs",
        parameters=2 * 7168 * 3 * 8192 + 7168 * 8192 + 3 * 7168 * (12288 + 7168) + 163840 * 7168,
        kv_bytes=2 * 64 * 128 * 2,
        workloads=acceptance.kimi(),
        anatomy=Source(
            what="anatomy of the drafter",
            where="https://github.com/torchspec-project/TorchSpec/blob/"
            "4643a0960544273abcb10437ccce7801eb2f39be/configs/draft_models/kimi_k25_eagle3.json",
        ),
    )
    layout = Layout(
        name="kimi-k2.5-int4-tp8",
        deployment=_deployment(8, 256, weight_precision="int4"),
        architecture=architecture,
        weights_bytes=weights_bytes(counted, expert_bits=4.5, other_bits=16) + 7 * 2 * replicated,
        kv_bytes_per_token=8 * kv_bytes_per_token(architecture, bytes_per_value=2),
        max_batch=256,
        tail=(1.15, "1.05 to 1.4"),
        head=head,
        caveats=caveats.kimi(),
    )
    return _profile(layout, plan)


def llama() -> Profile:
    """Llama-3.1-70B in FP8 on 4 H200."""
    architecture = read(MODELS / "llama-3.1-70b.yaml", Architecture)
    counted = count_parameters(architecture)
    plan = llama_plan()
    head = _drafter(
        plan,
        "EAGLE-3, one layer: hidden 8192, 64 heads over 8 keys, width 28672, 32000 draft tokens, "
        "bf16 on all 4 GPUs",
        parameters=2 * 8192 * 80 * 128 + 8192**2 + 3 * 8192 * (28672 + 8192) + 32000 * 8192,
        kv_bytes=2 * 8 * 128 * 2,
        workloads=acceptance.llama(),
        anatomy=Source(
            what="anatomy of the drafter",
            where="https://github.com/sgl-project/SpecForge configs/llama3-70B-ealge3.json",
        ),
    )
    matrices = counted.total - counted.embedding - counted.head
    layout = Layout(
        name="llama-3.1-70b-fp8-tp4",
        deployment=_deployment(4, 512, weight_precision="fp8"),
        architecture=architecture,
        weights_bytes=matrices + 2.0 * (counted.embedding + counted.head),
        kv_bytes_per_token=kv_bytes_per_token(architecture, bytes_per_value=2),
        max_batch=512,
        tail=(1.3, "1.2 to 2.0"),
        head=head,
        caveats=caveats.LLAMA,
    )
    return _profile(layout, plan)


def kimi_plan() -> Plan:
    """What is tabulated of Kimi-K2.5."""
    return Plan(
        composition=deployments.kimi(deployments.kimi_overlapping()),
        misfit=deployments.kimi_misfit().span(tables.MISFIT_TOKENS),
        upper=deployments.kimi(deployments.kimi_independent()),
        batches=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        mixed_batches=(1, 8, 32, 128, 256),
        draft_batches=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        power_by_tokens=MOE_POWER,
        drafter=deployments.kimi_drafter(),
    )


def llama_plan() -> Plan:
    """What is tabulated of Llama-3.1-70B."""
    composition = deployments.llama()
    return Plan(
        composition=composition,
        upper=composition,
        batches=tables.beside_edges(silicon.edges(deployments.LLAMA_TILES), largest=512),
        contexts=(1024, 65536),
        grid=DENSE_GRID,
        mixed_batches=(1, 8, 32, 128, 256, 512),
        draft_batches=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
        power_by_tokens=DENSE_POWER,
        drafter=deployments.llama_drafter(),
    )


def _profile(layout: Layout, plan: Plan) -> Profile:
    counted = count_parameters(layout.architecture)
    gpus = layout.deployment.gpus_per_replica
    free = gpus * (UTILISATION * H200_BYTES - RESERVE_BYTES) - layout.weights_bytes
    factor, spread = layout.tail
    return Profile(
        version=1,
        name=layout.name,
        model=ProfiledModel(
            name=layout.architecture.name,
            parameters_total=float(counted.total),
            parameters_active=float(counted.active),
            kv_bytes_per_token=layout.kv_bytes_per_token,
        ),
        deployment=layout.deployment,
        origin=Origin(
            kind="composed",
            date=DATE,
            machine="H200-SXM as in NVIDIA's tables; not run as a whole",
            versions={"aiconfigurator-core": "0.12.0", "vllm": "0.24.0"},
            sources=(SILICON,),
            note="Written by scripts/compose_profiles.py; each table names the rows it rests on.",
        ),
        steps=tables.step_table(plan),
        mixed=tables.mixed_table(plan),
        prefill=tables.prefill_table(plan),
        drafters={"eagle3": layout.head},
        memory=Memory(
            kv_capacity_tokens=float(free // layout.kv_bytes_per_token),
            weights_bytes=float(layout.weights_bytes),
            state_bytes_per_sequence=0.0,
            origin=Origin(
                kind="estimated",
                sources=MEMORY_SOURCES,
                note="90 % of memory, less weights and 3.9 GiB a GPU, NVIDIA's planning figure.",
            ),
        ),
        limits=Limits(max_batch=layout.max_batch, max_batched_tokens=8192),
        power=IdlePower(
            idle_w=IDLE_W,
            origin=Origin(
                kind="assumed",
                note="nvidia-smi printouts: 73 to 76 W empty, 120 to 122 W with a model loaded.",
            ),
        ),
        tail=Tail(
            tpot_p99_over_mean={"plain": factor, "speculative": factor},
            origin=Origin(kind="assumed", note=caveats.tail(factor, spread)),
        ),
        caveats=(*caveats.common(factor, spread), *layout.caveats),
    )


def _deployment(gpus: int, max_batch: int, weight_precision: str) -> Deployment:
    return Deployment(
        gpu="h200-sxm",
        gpus_per_replica=gpus,
        parallelism=f"tp{gpus}",
        weight_precision=weight_precision,
        kv_precision="bf16",
        engine="vllm",
        version="0.24.0",
        flags=(
            f"--tensor-parallel-size={gpus}",
            f"--max-num-seqs={max_batch}",
            "--max-num-batched-tokens=8192",
        ),
        graphs=True,
    )


def _drafter(
    plan: Plan,
    description: str,
    parameters: float,
    kv_bytes: float,
    workloads: dict[str, Acceptance],
    anatomy: Source,
) -> Drafter:
    return Drafter(
        kind="autoregressive",
        description=description,
        memory_bytes=2.0 * parameters,
        kv_bytes_per_token=float(kv_bytes),
        loaded_idle_overhead=LOADED_IDLE_OVERHEAD,
        draft=tables.draft_table(plan),
        acceptance=workloads,
        origin=Origin(kind="estimated", sources=(anatomy,), note="The embedding is the target's."),
    )
