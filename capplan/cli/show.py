"""`capplan show`: a model's anatomy, and how it fits GPUs."""

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.inputs import Format

if TYPE_CHECKING:
    from capplan.records.anatomy import Anatomy


class Precision(enum.StrEnum):
    """Of the weights."""

    stored = "stored"
    bf16 = "bf16"
    fp8 = "fp8"
    int8 = "int8"
    int4 = "int4"
    mxfp4 = "mxfp4"
    nvfp4 = "nvfp4"


class KvPrecision(enum.StrEnum):
    """Of the cache."""

    bf16 = "bf16"
    fp8 = "fp8"


def show(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Name, file of ours, or config.json (or its folder)."),
    ],
    on: Annotated[
        str | None,
        typer.Option(metavar="GPU:N", help="GPUs of one replica, as in h200-sxm:8."),
    ] = None,
    context: Annotated[
        str, typer.Option(metavar="TOKENS", help="Length of the sequences; 8k is 8192.")
    ] = "8k",
    precision: Annotated[
        Precision,
        typer.Option(help="Of all matrices of the layers; int4: weights alone.", show_choices=True),
    ] = Precision.stored,
    kv_precision: Annotated[
        KvPrecision | None,
        typer.Option(help="Default: what the checkpoint asks for, else bf16.", show_choices=True),
    ] = None,
    tp: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="GPUs that share each head and width; fewer than all: copies of attention with "
            "sequences of their own. Default: all.",
        ),
    ] = None,
    ep: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Groups that share out whole experts. Default 1: experts are sliced."
        ),
    ] = None,
    drafter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A known drafter, a drafter's config.json, a model, mtp for the model's own head, "
            "or none. Default: mtp where the model has it.",
        ),
    ] = None,
    draft_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", help="Default: what the drafter is made for, else 3."),
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Where the GPU is described. Default: a known fleet with it.",
        ),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
) -> None:
    """Show where a model's bytes are, what a step touches, and how many sequences fit GPUs."""
    from capplan.cli.show_run import Asked, run

    asked = Asked(
        context=context,
        precision=precision.value,
        kv_precision=None if kv_precision is None else kv_precision.value,
        on=on,
        tp=tp,
        ep=ep,
        drafter=drafter,
        draft_tokens=draft_tokens,
        fleet=fleet,
    )
    found = run(model, asked)
    if form is Format.json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        _print(found)


def _print(found: "Anatomy") -> None:
    from rich.console import Console

    from capplan.report.anatomy import report
    from capplan.report.text import show as print_report

    print_report(report(found), Console(highlight=False))
