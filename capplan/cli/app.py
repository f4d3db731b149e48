"""The program: its commands, and the one place where errors become exit codes."""

import os
import sys

import typer

from capplan import __version__
from capplan.cli.plan import plan
from capplan.cli.profile import profile
from capplan.cli.schema import schema
from capplan.errors import CapplanError

app = typer.Typer(
    name="capplan",
    help="How many GPUs, racks and kilowatts does this traffic need, "
    "and is speculative decoding worth switching on?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(plan)
app.command()(profile)
app.command()(schema)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"capplan {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Runs a command; errors that a user can mend go to stderr without a traceback."""
    try:
        app()
    except CapplanError as error:
        if os.environ.get("CAPPLAN_DEBUG") == "1":
            raise
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
