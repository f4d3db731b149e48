"""`capplan backtest`: what others measured beside what the physics says of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.inputs import Format

if TYPE_CHECKING:
    from capplan.records.backtest import Backtest


def backtest(
    serving: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Served rows, in the columns of AIConfigurator. Default: those that ship.",
        ),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(metavar="YAML", help="Published rounds of speculation and acceptance curves."),
    ] = None,
    reports: Annotated[
        Path | None, typer.Option(metavar="YAML", help="Speed-ups that users reported.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
) -> None:
    """Predict published measurements and show the errors, by model, GPU and engine.

    Needs the operator tables of the extra `silicon`. What is not given is taken from what ships:
    served rows, curves of acceptance; layers of experts come with the tables.
    """
    from capplan.cli.backtest_run import run

    found = run(serving, points, reports)
    if form is Format.json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        _print(found)


def _print(found: "Backtest") -> None:
    from rich.console import Console

    from capplan.report.backtest import report
    from capplan.report.text import show

    show(report(found), Console(highlight=False))
