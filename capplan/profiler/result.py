"""Cells become a profile that says of every number how it came about."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import capplan
from capplan.physics.cache import kv_bytes_per_token
from capplan.physics.fitted_steps import fitted_steps
from capplan.physics.parameters import count_parameters
from capplan.profiler.bounds import least_s
from capplan.profiler.clocks import CudaClock
from capplan.profiler.depth import USABLE
from capplan.profiler.device import Device, Precision
from capplan.profiler.sweep import Cell, work_of
from capplan.records.architecture import Architecture
from capplan.records.caveat import Caveat, Origin
from capplan.records.profile import (
    Deployment,
    IdlePower,
    Limits,
    Memory,
    MixedCell,
    MixedTable,
    PrefillCell,
    PrefillTable,
    Profile,
    ProfiledModel,
    StepCell,
    StepTable,
    Tail,
)

ASSUMED_TAIL: Final = 1.3
"""99th percentile of the time per token over its mean, until a simulation replaces it."""
_POWER: Final = (
    "Watts are those of the layers that ran and the head, over and over, caches not overwritten; "
    "the whole model's are taken to be the same."
)


@dataclass(frozen=True)
class Measured:
    """A finished sweep and what it was done with."""

    device: Device
    precision: Precision
    bytes_per_value: int
    whole: Architecture
    sampled: Architecture
    loaded: bool
    """Whether the device holds the model still, so that its idle power can be read."""
    date: dt.date


def profile(measured: Measured, cells: Sequence[Cell]) -> Profile:
    """Builds the profile.

    Args:
        measured: What was measured, on what.
        cells: All cells, in any order; each table must have at least one.
    """
    steps = sorted(
        (cell for cell in cells if isinstance(cell, StepCell)),
        key=lambda cell: (cell.batch, cell.context_tokens, cell.query_tokens),
    )
    mixed = sorted(
        (cell for cell in cells if isinstance(cell, MixedCell)),
        key=lambda cell: (cell.batch, cell.context_tokens, cell.query_tokens, cell.prefill_tokens),
    )
    prefill = sorted(
        (cell for cell in cells if isinstance(cell, PrefillCell)),
        key=lambda cell: (cell.tokens, cell.cached_tokens),
    )
    name = f"{measured.whole.name}-{measured.precision}-x1"
    return Profile(
        version=1,
        name=f"{measured.device.name}/{name}",
        model=_model(measured),
        deployment=_deployment(measured),
        origin=_origin(measured),
        steps=StepTable(rows=tuple(steps)),
        mixed=MixedTable(rows=tuple(mixed)),
        prefill=PrefillTable(rows=tuple(prefill)),
        memory=_memory(measured),
        limits=Limits(
            max_batch=max(cell.batch for cell in steps),
            max_batched_tokens=max(work_of(cell).tokens for cell in cells),
        ),
        power=_power(measured),
        tail=Tail(
            tpot_p99_over_mean={"plain": ASSUMED_TAIL, "speculative": ASSUMED_TAIL},
            origin=Origin(kind="assumed", note="not measured: one step at a time was timed"),
        ),
        fit=fitted_steps(
            tuple(steps),
            least_s(
                measured.whole, measured.bytes_per_value, measured.device.bandwidth_bytes_per_s
            ),
        ),
        caveats=_caveats(measured, cells),
    )


def _model(measured: Measured) -> ProfiledModel:
    counted = count_parameters(measured.whole)
    return ProfiledModel(
        name=measured.whole.name,
        parameters_total=counted.total,
        parameters_active=counted.active,
        kv_bytes_per_token=kv_bytes_per_token(measured.whole, measured.bytes_per_value),
    )


def _deployment(measured: Measured) -> Deployment:
    clock = measured.device.clock
    return Deployment(
        gpu=measured.device.name,
        gpus_per_replica=1,
        parallelism="tp1",
        weight_precision=measured.precision,
        kv_precision=measured.precision,
        engine="capplan-profile",
        version=capplan.__version__,
        graphs=clock.eager_steps == 0 if isinstance(clock, CudaClock) else None,
    )


def _scaled(measured: Measured) -> bool:
    return measured.whole.layer_kinds != measured.sampled.layer_kinds


def _origin(measured: Measured) -> Origin:
    on_cpu = measured.device.kind == "cpu"
    clock = "processor time of one thread" if on_cpu else "CUDA events"
    note = (
        f"{clock}; random weights in the model's shapes, median of the runs; "
        "limits.max_batched_tokens is the largest step measured, prefill and verify tokens together"
    )
    return Origin(
        kind="composed" if _scaled(measured) else "measured",
        date=measured.date,
        machine=measured.device.machine,
        versions=measured.device.versions | {"capplan": capplan.__version__},
        note=note + (f"; {_scaling(measured)}" if _scaled(measured) else ""),
    )


def _scaling(measured: Measured) -> str:
    kinds = zip(measured.sampled.layer_kinds, measured.whole.layer_kinds, strict=True)
    parts = [f"{sampled.layers} of {whole.layers}" for sampled, whole in kinds]
    return (
        f"layers measured by kind: {', '.join(parts)}; the rest added as that kind's time alone, "
        "a layer"
    )


def _memory(measured: Measured) -> Memory:
    weights = count_parameters(measured.whole).total * measured.bytes_per_value
    kv = kv_bytes_per_token(measured.whole, measured.bytes_per_value)
    room = measured.device.free_bytes * USABLE - weights
    return Memory(
        kv_capacity_tokens=float(max(room, 0) // kv),
        weights_bytes=weights,
        state_bytes_per_sequence=0,
        origin=Origin(
            kind="estimated",
            note=f"{USABLE:.0%} of the memory that was free, less all layers' weights",
        ),
    )


def _power(measured: Measured) -> IdlePower | None:
    metered = measured.device.meter.idle_w()
    if metered is not None:
        state = "model loaded" if measured.loaded else "no model loaded"
        note = f"energy counter over a second, {state}"
        return IdlePower(idle_w=metered, origin=Origin(kind="measured", note=note))
    return None


def _caveats(measured: Measured, cells: Sequence[Cell]) -> tuple[Caveat, ...]:
    sparse = any(kind.feed_forward.kind == "moe" for kind in measured.whole.layer_kinds)
    whole_fits = _memory(measured).kv_capacity_tokens > 0
    metered = any(cell.power_w is not None for cell in cells if not isinstance(cell, MixedCell))
    chosen = [
        (True, "engine", "Kernels of torch, not of a serving engine: no scheduler, no sampling."),
        (True, "acceptance", "Random weights cannot show how many drafts are kept: no drafters."),
        (True, "tail", f"Percentiles rest on an assumed {ASSUMED_TAIL} times the mean."),
        (sparse, "experts", "Tokens chose experts independently; those of one text share some."),
        (_scaled(measured), "depth", f"Not the whole model ran: {_scaling(measured)}."),
        (metered, "power", _POWER),
        (not whole_fits, "memory", "All layers do not fit on this device: no replica of one GPU."),
        (measured.device.kind == "cpu", "clock", "Step times are processor time, not wall time."),
    ]
    return tuple(Caveat(about=about, text=text) for applies, about, text in chosen if applies)
