"""How a model fits a set of GPUs: layouts side by side, where it turns compute-bound, remedies."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from capplan.errors import Complaint, InfeasibleError, InputError
from capplan.physics import memory
from capplan.physics.precision import arithmetic, formats
from capplan.physics.sharding import Split, broken_rules
from capplan.planner.remedies import Alternatives, remedies
from capplan.planner.ridges import WHOLE_STEP, ridges
from capplan.planner.setup import Setup, layout
from capplan.records.anatomy import Drafter, Fit, Ridge
from capplan.records.architecture import Architecture
from capplan.records.attention import Cross, Gqa
from capplan.records.caveat import Caveat
from capplan.records.fleet import Gpu
from capplan.records.stored import Stored

MOST_GPUS: Final = 1024
"""How far the nearest number of GPUs that would do is looked for."""


def fit(setup: Setup, gpu: str, others: Alternatives) -> Fit:
    """A model on GPUs.

    Args:
        setup: What is asked for.
        gpu: What the GPU is called.
        others: GPUs and drafters that remedies may choose from.

    Raises:
        InputError: The model cannot be split so, or the GPU cannot run the precision.
        InfeasibleError: The weights do not fit: says how many GPUs would do.
    """
    _check(setup, gpu)
    if not setup.weights_fit():
        raise InfeasibleError(_too_large(setup, gpu))
    asked, rows = layout(setup), ridges(setup)
    return Fit(
        gpu=gpu,
        gpus=setup.split.gpus,
        memory_bytes=setup.gpu.memory_bytes,
        usable_bytes=memory.usable_bytes(setup.gpu.memory_bytes),
        asked=asked,
        others=tuple(layout(replace(setup, split=split)) for split in _compared(setup)),
        drafter=_drafter(setup),
        ridges=rows,
        memory_binds=_binds(setup, rows),
        remedies=remedies(setup, others),
    )


def caveats(setup: Setup, gpu: str) -> tuple[Caveat, ...]:
    """What to mind about a fit."""
    found = [
        Caveat(
            about="memory",
            text=f"{memory.UTILISATION:.0%} of each GPU, less {memory.RESERVE_BYTES / 2**30:.1f} "
            "GiB for activations and communication, a planning figure; engines round caches up to "
            "pages",
        )
    ]
    tensor = setup.split.tensor
    kinds = [kind.attention for kind in setup.architecture.layer_kinds]
    heads = [one.kv_heads for one in kinds if isinstance(one, Gqa | Cross)]
    if heads and tensor > min(heads):
        text = f"tp {tensor} over {min(heads)} key-value heads: each stands on "
        found.append(Caveat(about="cache", text=f"{text}{tensor // min(heads)} GPUs"))
    if tensor > 1 and any(one.kind in ("mla", "compressed") for one in kinds):
        text = f"latent, shared by all heads: each of the {tensor} GPUs of a copy keeps all of it"
        found.append(Caveat(about="cache", text=text))
    if setup.gpu.precisions is None:
        text = f"the fleet does not say what {gpu} computes in (precisions): not checked"
        found.append(Caveat(about="precision", text=text))
    used = set(formats(setup.stored).values())
    if unpacked := sorted(one for one in used if arithmetic(one, setup.gpu) not in (one, None)):
        text = f"{', '.join(unpacked)} weights are unpacked, arithmetic is in 16 bits"
        found.append(Caveat(about="precision", text=text))
    return tuple(found)


def _check(setup: Setup, gpu: str) -> None:
    broken = broken_rules(setup.architecture.layer_kinds, setup.split)
    complaints = [Complaint(f"--{one.option}", "", one.rule, one.found) for one in broken]
    complaints += _precision(setup.stored, setup.architecture, setup.gpu, gpu)
    if complaints:
        raise InputError(complaints)


def _precision(
    stored: Stored, architecture: Architecture, gpu: Gpu, name: str
) -> Iterator[Complaint]:
    used = set(formats(stored).values())
    explicit = stored != architecture.stored
    # Weights alone in four bits of floating point are a checkpoint's matter, not a wish.
    native = {"mxfp4", "nvfp4"} if explicit and gpu.precisions is not None else set()
    wrong = [
        one
        for one in sorted(used)
        if arithmetic(one, gpu) is None or (one in native and arithmetic(one, gpu) != one)
    ]
    known, alone = ", ".join(gpu.precisions or ()), ", ".join(gpu.weight_only)
    remedy = f"its engines unpack weights stored in {alone}: --precision stored, or int4"
    for one in wrong:
        rule = f"{name} cannot compute in it, only in {known}"
        yield Complaint("--precision", "", rule, one, remedy if alone else None)


def _too_large(setup: Setup, gpu: str) -> str:
    needed = sum(setup.weights_on_gpu().values())
    usable, split = memory.usable_bytes(setup.gpu.memory_bytes), setup.split
    nearest = next(_larger(setup), None)
    remedy = (
        f"no number of {gpu} up to {MOST_GPUS} does"
        if nearest is None
        else f"nearest feasible: --on {gpu}:{nearest.gpus} --tp {nearest.tensor} "
        f"--ep {nearest.expert}"
    )
    return (
        f"{setup.architecture.name}: weights in {setup.stored.scheme} do not fit: "
        f"{needed / 1e9:.1f} GB on each of {split.gpus} x {gpu}, which have {usable / 1e9:.1f} GB "
        f"for them; {remedy}"
    )


def _larger(setup: Setup) -> Iterator[Split]:
    """Ways to share the model over more GPUs that hold the weights."""
    kinds = setup.architecture.layer_kinds
    for gpus in range(setup.split.gpus + 1, MOST_GPUS + 1):
        tensors = {gpus, setup.split.tensor, min(gpus, 8)}
        for tensor in sorted(tensors, reverse=True):
            for expert in (1, gpus):
                split = Split(gpus, tensor, expert)
                if not broken_rules(kinds, split) and replace(setup, split=split).weights_fit():
                    yield split


def _compared(setup: Setup) -> list[Split]:
    """Tensor parallelism alone, whole experts, whole experts beside copies of attention."""
    gpus = setup.split.gpus
    every = [Split(gpus, gpus, 1), Split(gpus, gpus, gpus), Split(gpus, 1, gpus)]
    sparse = any(kind.feed_forward.kind == "moe" for kind in setup.architecture.layer_kinds)
    wanted = every if sparse and gpus > 1 else every[:1]
    return [split for split in wanted if split != setup.split]


def _drafter(setup: Setup) -> Drafter | None:
    drafter = setup.drafter
    if drafter is None:
        return None
    own = drafter.split(setup.split)
    return Drafter(
        name=drafter.name,
        parameters=drafter.parameters(),
        weights_bytes=drafter.weights_bytes(),
        kv_bytes_per_token=drafter.kv_bytes_per_token(setup.kv_bytes_per_value),
        draft_tokens=setup.draft_tokens,
        whole=own.gpus < setup.split.gpus,
    )


def _binds(setup: Setup, rows: tuple[Ridge, ...]) -> bool | None:
    """Memory binds where the batch that fits stays below the batch that turns compute-bound."""
    if setup.gpu.bandwidth_bytes_per_s is None or setup.gpu.bf16_flop_per_s is None:
        return None
    whole = next(row for row in rows if row.part == WHOLE_STEP)
    batch = whole.batch if setup.drafter is None else whole.batch_with_drafter
    return batch is None or setup.sequences() < batch
