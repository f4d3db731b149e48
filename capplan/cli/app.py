"""The program: its commands, and the one place where errors become exit codes."""

import errno
import io
import os
import sys

import typer

from capplan import __version__
from capplan.cli.backtest import backtest
from capplan.cli.compose import compose
from capplan.cli.forecast import forecast
from capplan.cli.plan import plan
from capplan.cli.profile_group import profiles
from capplan.cli.schema import schema
from capplan.cli.show import show
from capplan.cli.simulate import simulate
from capplan.errors import CapplanError

_CANNOT_PRINT = (errno.EPIPE, errno.ENOSPC, errno.EIO)

app = typer.Typer(
    name="capplan",
    help="How many GPUs, racks and kilowatts does this traffic need, "
    "and is speculative decoding worth switching on?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(plan)
app.command()(forecast)
app.add_typer(profiles)
app.command()(compose)
app.command()(simulate)
app.command()(show)
app.command()(backtest)
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a letter gets a mark in its place, not a failure.
            stream.reconfigure(errors="replace")
    try:
        app()
    except CapplanError as error:
        if os.environ.get("CAPPLAN_DEBUG") == "1":
            raise
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in _CANNOT_PRINT:
            raise
        _drop_output()
        sys.stderr.write(f"stdout: cannot be written: {error.strerror}\n")
        sys.exit(1)


def _drop_output() -> None:
    """What could not be printed must not be tried again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
