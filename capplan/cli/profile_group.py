"""`capplan profile`: a model's steps, or what a checkpoint does with real text."""

from typing import Any

import typer
from typer.core import TyperGroup

from capplan.cli.acceptance import acceptance
from capplan.cli.profile import profile
from capplan.cli.routing import routing

STEPS = "steps"


class ModelOrCommand(TyperGroup):
    """Takes whatever is no command for the model whose steps are wanted."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the measuring command before a model or its options."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [STEPS, *args]
        return super().parse_args(ctx, args)


profiles = typer.Typer(
    name="profile",
    cls=ModelOrCommand,
    help="Measure on this machine: `capplan profile MODEL` times a model's steps (short for "
    "`capplan profile steps MODEL`, whose --help shows the options); acceptance and routing run "
    "a checkpoint over real text.",
)
profiles.command(STEPS)(profile)
profiles.command()(acceptance)
profiles.command()(routing)
