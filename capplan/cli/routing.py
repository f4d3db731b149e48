"""`capplan profile routing`: how a checkpoint's routers choose experts over real text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.inputs import Format
from capplan.cli.measuring import INTERRUPTED, measuring

if TYPE_CHECKING:
    from capplan.records.routing import Routing


def routing(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="Folder of a checkpoint with experts.")
    ],
    prompts: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|NAME",
            help="Texts as `profile acceptance` takes them; give it once a workload.",
        ),
    ],
    workload: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="What these texts are: a workload, a language."),
    ],
    max_tokens: Annotated[
        int,
        typer.Option(
            help="0: the texts themselves are read. N: each is answered with up to N tokens, and "
            "the answers alone are looked at."
        ),
    ] = 0,
    temperature: Annotated[
        float, typer.Option(help="Of the answers; 0 takes the likeliest token.")
    ] = 0.7,
    seed: Annotated[int, typer.Option(help="Of answers and of batches put together.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Keeps the tables as YAML."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(metavar="PROFILE", help="Puts them into this profile's file.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file, or the profile's routing, if there.")
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
) -> None:
    """Measure how alike the tokens of real text choose experts, by depth and workload.

    Popularity, overlap at lags 1 to 16 and the distinct experts that 1 to 16 neighbours touch,
    beside what the formula of plans makes of them; with several workloads, how far they like the
    same experts. No text is kept.
    """
    from capplan.cli import routing_options as options

    asked = options.asked(
        (checkpoint, prompts, workload), max_tokens=max_tokens, temperature=temperature, seed=seed
    )
    destination = options.destination(output, into, force=force)
    with measuring():
        from capplan.cli.routing_run import run
    try:
        found = run(asked)
    except KeyboardInterrupt:
        typer.echo("Stopped: nothing was written.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    options.write(destination, found)
    if form is Format.json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        _print(found, destination.path)


def _print(found: "Routing", path: Path | None) -> None:
    from rich.console import Console

    from capplan.report.routing import report
    from capplan.report.text import show

    console = Console(highlight=False)
    show(report(found), console)
    if path is not None:
        console.print(f"\nWrote {path}", soft_wrap=True, markup=False)
