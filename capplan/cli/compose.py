"""`capplan compose`: a profile of public operator times and the physics."""

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.inputs import Format

if TYPE_CHECKING:
    from capplan.records.composition import Composition

MOST_DRAFTS = 8


class Engine(enum.StrEnum):
    """Engines whose operators were timed."""

    vllm = "vllm"
    sglang = "sglang"
    trtllm = "trtllm"


class Weights(enum.StrEnum):
    """Precision of the layers' matrices."""

    stored = "stored"
    bf16 = "bf16"
    fp8 = "fp8"
    fp8_block = "fp8_block"
    int4 = "int4"
    mxfp4 = "mxfp4"
    nvfp4 = "nvfp4"


class Cache(enum.StrEnum):
    """Precision of cached keys and values."""

    bf16 = "bf16"
    fp8 = "fp8"


def compose(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Name, file of ours, or config.json (or its folder)."),
    ],
    on: Annotated[
        str, typer.Option(metavar="GPU:N", help="GPUs of one replica, as in h200-sxm:8.")
    ],
    engine: Annotated[
        Engine, typer.Option(help="Whose kernels were timed.", show_choices=True)
    ] = Engine.vllm,
    tp: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=4096,
            help="GPUs that share each head and width; fewer than all: copies of attention with "
            "sequences of their own. Default: all.",
        ),
    ] = None,
    ep: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=4096,
            help="Groups that share out whole experts. Default 1: experts are sliced.",
        ),
    ] = None,
    weights: Annotated[
        Weights, typer.Option(help="Of all matrices of the layers.", show_choices=True)
    ] = Weights.stored,
    experts: Annotated[
        Weights | None,
        typer.Option(help="Of routed experts, where it is another.", show_choices=True),
    ] = None,
    cache: Annotated[
        Cache | None,
        typer.Option(help="Default: what the checkpoint asks for, else bf16.", show_choices=True),
    ] = None,
    drafter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A known drafter, a drafter's config.json, a model, mtp for the model's own head, "
            "or none. Default: the model's own head, else a drafter known for it.",
        ),
    ] = None,
    draft_tokens: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=MOST_DRAFTS, help="Most drafts that are tabulated."),
    ] = MOST_DRAFTS,
    routing: Annotated[
        str | None,
        typer.Option(
            metavar="FILE[:WORKLOAD]",
            help="How tokens choose experts, as `capplan profile routing -o` kept it. Default: an "
            "assumption, which is said.",
        ),
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Where the GPU's memory and power are described. Default: a known fleet with it.",
        ),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Keep the profile, for capplan plan."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file where it is there already.")
    ] = False,
) -> None:
    """Compose a profile of operator times that NVIDIA published: nothing is measured here."""
    from capplan import __version__
    from capplan.cli import profile_output
    from capplan.cli.compose_run import Choice
    from capplan.cli.compose_run import compose as run
    from capplan.composer.summary import summary
    from capplan.files.writer import write_record

    if output is not None:
        profile_output.check(output, force=force, own_folder=False)
    choice = Choice(
        on=on,
        fleet=fleet,
        engine=engine.value,
        tp=tp,
        ep=ep,
        weights=weights.value,
        experts=None if experts is None or experts is Weights.stored else experts.value,
        cache=None if cache is None else cache.value,
        drafter=drafter,
        draft_tokens=draft_tokens,
        routing=routing,
    )
    found = run(model, choice)
    if output is not None:
        write_record(output, found.composed.profile)
    said = summary(found.composed, found.hardware.gpu.memory_bytes, __version__)
    if form is Format.json:
        typer.echo(said.model_dump_json(indent=2))
    else:
        _print(said)


def _print(found: "Composition") -> None:
    from rich.console import Console

    from capplan.report.composition import report
    from capplan.report.text import show

    show(report(found), Console(highlight=False))
