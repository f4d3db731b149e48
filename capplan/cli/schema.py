"""`capplan schema`: the file formats, as JSON schemas."""

import enum
from typing import Annotated

import typer


class Kind(enum.StrEnum):
    """Formats that have a schema."""

    forecast = "forecast"
    profile = "profile"
    fleet = "fleet"
    model = "model"
    drafter = "drafter"
    plan = "plan"
    anatomy = "anatomy"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Which format.", show_choices=True)],
) -> None:
    """Print the JSON schema of a file format; plan and anatomy: of --format json."""
    from capplan.files.schema import json_schema
    from capplan.records.anatomy import Anatomy
    from capplan.records.architecture import Architecture
    from capplan.records.base import Record
    from capplan.records.fleet import Fleet
    from capplan.records.forecast import Forecast
    from capplan.records.known_drafter import KnownDrafter
    from capplan.records.plan import Portfolio
    from capplan.records.profile import Profile

    records: dict[Kind, type[Record]] = {
        Kind.forecast: Forecast,
        Kind.profile: Profile,
        Kind.fleet: Fleet,
        Kind.model: Architecture,
        Kind.drafter: KnownDrafter,
        Kind.plan: Portfolio,
        Kind.anatomy: Anatomy,
    }
    typer.echo(json_schema(records[kind]))
