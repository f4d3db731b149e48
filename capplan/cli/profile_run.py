"""The run behind `capplan profile`: a sweep with its journal and its progress, then the file."""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import capplan
from capplan.cli import profile_output
from capplan.cli.journal import GO_ON, Journal
from capplan.cli.profile_options import Asked
from capplan.cli.progress import progress
from capplan.errors import Complaint, InputError
from capplan.files.writer import write_record
from capplan.profiler import depth, device, result, sweep
from capplan.profiler.device import Precision
from capplan.profiler.grid import Grid, Work, chunks, default_grid
from capplan.profiler.maker import Maker
from capplan.profiler.model import Model
from capplan.records.architecture import Architecture
from capplan.records.profile import Profile

QUICK_LAYERS: Final = 1
"""Layers of a kind that a quick look measures."""


@dataclass(frozen=True)
class Scheme:
    """What will be measured, on what, and where it goes."""

    device: device.Device
    precision: Precision
    whole: Architecture
    sampled: Architecture
    grid: Grid
    works: tuple[Work, ...]
    output: Path


def run(architecture: Architecture, asked: Asked) -> tuple[Path, Profile]:
    """Measures a model and writes its profile.

    Args:
        architecture: The model.
        asked: The command's options.

    Returns:
        The file written, and what stands in it.

    Raises:
        MeasureError: If the device is missing or too small.
        InputError: If options contradict one another, a file is in the way, or the profile or
            the journal cannot be written.
    """
    scheme = _scheme(architecture, asked)
    profile_output.check(scheme.output, force=asked.force, own_folder=asked.output is None)
    journal = _journal(scheme, asked)
    cells = journal.resume()
    todo = _todo(scheme, asked, cells)
    bench = _bench(scheme, asked) if todo else None
    if bench is not None:
        with progress("cells", len(scheme.works), len(cells)) as advance:

            def save(cell: sweep.Cell) -> None:
                journal.append(cell)
                cells.append(cell)
                advance()

            sweep.sweep(bench, todo, save)
    # Idle power is read while `bench` still holds the model on the device.
    profile = result.profile(_measured(scheme, loaded=bench is not None), cells)
    _write(scheme.output, profile)
    journal.close()
    return scheme.output, profile


def _journal(scheme: Scheme, asked: Asked) -> Journal:
    output = scheme.output
    if asked.output is None:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            rule = f"cannot be made: {error.strerror or error}"
            raise InputError([Complaint(str(output.parent), "", rule)]) from error
    beside = output.with_name(f"{output.name}.partial.jsonl")
    return Journal(beside, _settings(scheme, asked))


def _write(output: Path, profile: Profile) -> None:
    try:
        write_record(output, profile)
    except InputError as error:
        raise InputError([replace(c, remedy=GO_ON) for c in error.complaints]) from error


def _scheme(architecture: Architecture, asked: Asked) -> Scheme:
    chosen = device.choose(asked.device)
    precision = asked.precision or ("bf16" if chosen.kind == "cuda" else "fp32")
    room = depth.Room(chosen.free_bytes * depth.USABLE, device.DTYPES[precision].itemsize)
    most = QUICK_LAYERS if asked.quick else None
    sampled = depth.sample(architecture, room, asked.layers, most)
    grid = _grid(chosen.kind, asked)
    name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{architecture.name}-{precision}-x1")
    file = Path("profiles", chosen.name, f"{name}.yaml")
    return Scheme(
        device=chosen,
        precision=precision,
        whole=architecture,
        sampled=sampled,
        grid=grid,
        works=depth.fitting(sampled, room, grid.works()),
        output=asked.output or file,
    )


def _grid(kind: device.DeviceKind, asked: Asked) -> Grid:
    """The device's grid with the axes that the user named."""
    grid = default_grid(kind, quick=asked.quick)
    if asked.batches is not None:
        ends = (asked.batches[0], asked.batches[-1])
        mixed = tuple(sorted(set(ends))) if asked.quick else asked.batches
        grid = replace(grid, batches=asked.batches, mixed_batches=mixed)
    if asked.contexts is not None:
        grid = replace(grid, contexts=asked.contexts)
    if asked.draft_tokens is not None:
        grid = replace(grid, draft_tokens=asked.draft_tokens)
    if asked.max_batched_tokens is not None:
        largest = _largest_chunk(grid, asked.max_batched_tokens)
        grid = replace(grid, prefill_tokens=chunks(largest, quick=asked.quick))
    return grid


def _largest_chunk(grid: Grid, max_batched_tokens: int) -> int:
    """What verifying the largest batch leaves of a step's token budget. [tokens]."""
    verified = grid.batches[-1] * (grid.draft_tokens + 1)
    if max_batched_tokens <= verified:
        rule = (
            f"must exceed {verified}, the largest batch ({grid.batches[-1]}) times "
            f"draft_tokens + 1 ({grid.draft_tokens + 1}), to leave room for a prefill chunk"
        )
        remedy = "Raise it, or lower --batches or --draft-tokens."
        found = str(max_batched_tokens)
        raise InputError([Complaint("--max-batched-tokens", "", rule, found, remedy)])
    return max_batched_tokens - verified


def _settings(scheme: Scheme, asked: Asked) -> dict[str, Any]:
    """All that must agree for cells of two runs to stand in one profile."""
    grid = scheme.grid
    return {
        "capplan": capplan.__version__,
        "machine": scheme.device.machine,
        "versions": scheme.device.versions,
        "precision": scheme.precision,
        "model": scheme.whole.model_dump(mode="json"),
        "layers": [kind.layers for kind in scheme.sampled.layer_kinds],
        "batches": grid.batches,
        "contexts": grid.contexts,
        "draft_tokens": grid.draft_tokens,
        "prefill_tokens": grid.prefill_tokens,
        "mixed_batches": grid.mixed_batches,
        "runs": asked.runs,
        "seed": asked.seed,
    }


def _todo(scheme: Scheme, asked: Asked, cells: Sequence[sweep.Cell]) -> list[Work]:
    done = {sweep.work_of(cell) for cell in cells}
    return [work for work in sweep.shuffled(scheme.works, asked.seed) if work not in done]


def _bench(scheme: Scheme, asked: Asked) -> sweep.Bench:
    dtype = device.DTYPES[scheme.precision]
    make = Maker(scheme.device.kind, dtype, asked.seed)
    cache_tokens = max(work.cache_tokens for work in scheme.works)
    return sweep.Bench(
        model=Model(scheme.sampled, cache_tokens, make),
        whole=scheme.whole,
        sampled=scheme.sampled,
        clock=scheme.device.clock,
        meter=scheme.device.meter,
        runs=asked.runs,
    )


def _measured(scheme: Scheme, *, loaded: bool) -> result.Measured:
    return result.Measured(
        device=scheme.device,
        precision=scheme.precision,
        bytes_per_value=device.DTYPES[scheme.precision].itemsize,
        whole=scheme.whole,
        sampled=scheme.sampled,
        loaded=loaded,
        date=dt.datetime.now(tz=dt.UTC).date(),
    )
