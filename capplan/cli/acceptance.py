"""`capplan profile acceptance`: how many drafts a target keeps, counted over real prompts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.inputs import Format
from capplan.cli.measuring import INTERRUPTED, measuring

if TYPE_CHECKING:
    from capplan.records.acceptance import MeasuredAcceptance


def acceptance(
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Folder of the served model's checkpoint.")
    ],
    drafter: Annotated[
        str,
        typer.Argument(
            metavar="DRAFTER",
            help="Folder of a small model's checkpoint; ngram or ngram:2..4 (looks the last tokens "
            "up in the text); layers:20 (the target's first layers); int8 (the target in INT8); "
            "mtp (its own multi-token prediction).",
        ),
    ],
    prompts: Annotated[
        str,
        typer.Option(
            metavar="FILE|NAME",
            help='JSON lines of {"prompt": …} or {"messages": […]}, plain text with a prompt a '
            "line, or shipped: code, chat, extraction.",
        ),
    ],
    workload: Annotated[
        str, typer.Option(metavar="NAME", help="What forecasts call traffic of this kind.")
    ],
    draft_tokens: Annotated[int, typer.Option(help="Drafts a round, 1 to 64.")] = 4,
    temperature: Annotated[
        float, typer.Option(help="Of target and drafter; 0 takes the likeliest token.")
    ] = 0.0,
    max_tokens: Annotated[int, typer.Option(help="Output tokens of a request, about.")] = 256,
    seed: Annotated[int, typer.Option(help="Of sampling and of the bootstrap.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Keeps the table as YAML."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(metavar="PROFILE", help="Adds it to a drafter of this profile's file."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--drafter", metavar="NAME", help="The drafter's name there. Default: the only one."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file, or the workload's table, if there.")
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
) -> None:
    """Count the drafts that a target keeps, position by position, over real prompts.

    Drafts are kept by the exact rule (Leviathan et al., 2211.17192), so the text is distributed as
    without them; at temperature 0 it is the target's own. Prompts pass through the target's chat
    template. Neither prompts nor texts are kept: a profile holds counts.
    """
    from capplan.cli import acceptance_options as options
    from capplan.cli import acceptance_output as place

    asked = options.asked(
        (target, drafter, prompts, workload), (draft_tokens, temperature, max_tokens, seed)
    )
    destination = place.destination(output, into, name, asked, force=force)
    with measuring():
        from capplan.cli.acceptance_run import run
    try:
        found = run(asked, destination.drafter)
    except KeyboardInterrupt:
        typer.echo("Stopped: nothing was written.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    place.write(destination, found, asked)
    if form is Format.json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        _print(found, destination.path)


def _print(found: "MeasuredAcceptance", path: Path | None) -> None:
    from rich.console import Console

    from capplan.report.acceptance import report
    from capplan.report.text import show

    console = Console(highlight=False)
    show(report(found), console)
    if path is not None:
        console.print(f"\nWrote {path}", soft_wrap=True, markup=False)
