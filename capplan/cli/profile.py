"""`capplan profile MODEL`: measures a model on this machine and stores a profile."""

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.inputs import Format
from capplan.cli.measuring import INTERRUPTED, measuring

if TYPE_CHECKING:
    from capplan.records.profile import Profile


class DeviceName(enum.StrEnum):
    """Where to measure."""

    cuda = "cuda"
    cpu = "cpu"


class DtypeName(enum.StrEnum):
    """Width of weights and cache."""

    fp32 = "fp32"
    bf16 = "bf16"


def profile(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Name, file of ours, or config.json (or its folder)."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Default: profiles/<gpu>/<model>-<precision>-x1.yaml here.",
        ),
    ] = None,
    device: Annotated[
        DeviceName | None, typer.Option(help="Default: cuda where there is one.")
    ] = None,
    dtype: Annotated[
        DtypeName | None, typer.Option(help="Default: bf16 on cuda, fp32 on cpu.")
    ] = None,
    layers: Annotated[
        str, typer.Option(metavar="auto|N", help="Layers of each kind; auto: as many as fit.")
    ] = "auto",
    batches: Annotated[
        str | None, typer.Option(metavar="LIST", help="Sequences of a step, as in 1,4,16.")
    ] = None,
    contexts: Annotated[
        str | None, typer.Option(metavar="LIST", help="Cached tokens a sequence.")
    ] = None,
    draft_tokens: Annotated[
        int | None, typer.Option(help="Longest draft that steps verify, 0 to 64.")
    ] = None,
    max_batched_tokens: Annotated[
        int | None,
        typer.Option(
            help="Token budget of a step: what verifying the largest batch leaves of it "
            "is the largest prefill chunk."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A coarse look: few cells, one layer of a kind.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(help="Timed runs a cell. Default 20, quick 6.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Weights, tokens and order of cells.")] = 0,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there already.")
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
) -> None:
    """Measure steps of a model with random weights on this machine, and keep them as a profile."""
    from capplan.cli import models
    from capplan.cli import profile_options as options

    options.check(
        ("--draft-tokens", draft_tokens, 0, 64),
        ("--max-batched-tokens", max_batched_tokens, 1, options.MOST_BATCHED_TOKENS),
        ("--runs", runs, 1, options.MOST_RUNS),
        ("--seed", seed, 0, options.LARGEST_SEED),
    )
    default_runs = options.QUICK_RUNS if quick else options.RUNS
    asked = options.Asked(
        output=output,
        force=force,
        device=None if device is None else device.value,
        precision=None if dtype is None else dtype.value,
        layers=options.layers(layers),
        batches=options.whole_numbers("--batches", batches, options.LARGEST_BATCH),
        contexts=options.whole_numbers("--contexts", contexts, options.LARGEST_CONTEXT_TOKENS),
        draft_tokens=draft_tokens,
        max_batched_tokens=max_batched_tokens,
        quick=quick,
        runs=default_runs if runs is None else runs,
        seed=seed,
    )
    architecture = models.architecture(model)
    with measuring():
        from capplan.cli.profile_run import run
    try:
        path, result = run(architecture, asked)
    except KeyboardInterrupt:
        sys.stderr.write("Stopped. The same command goes on after the last cell measured.\n")
        raise typer.Exit(INTERRUPTED) from None
    if form is Format.json:
        typer.echo(result.model_dump_json(indent=2))
    else:
        _show(path, result)


def _show(path: Path, result: "Profile") -> None:
    from rich.console import Console

    from capplan.cli.profile_table import fit_line, tables
    from capplan.physics.doubtful import impossible_steps

    console = Console(highlight=False, markup=False)
    for table in tables(result, console.width):
        console.print(table)
    if (line := fit_line(result)) is not None:
        console.print(line, soft_wrap=True)
    for wrong, count in impossible_steps(result.steps.rows).items():
        console.print(f"{count} of {len(result.steps.rows)} steps {wrong}, which cannot be.")
    console.print(f"{result.origin.kind}: {result.origin.note}", soft_wrap=True)
    console.print(f"Wrote {path}", soft_wrap=True)
