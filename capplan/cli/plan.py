"""`capplan plan`: forecasts to fleets."""

import enum
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from capplan.errors import Complaint
    from capplan.files.catalogue import Kind
    from capplan.records.fleet import Fleet
    from capplan.records.forecast import Forecast
    from capplan.records.plan import Plan, Portfolio
    from capplan.records.profile import Profile

T = TypeVar("T")

_POLICY = re.compile(r"plain|always(:[1-9][0-9]?)?|by-load")


class Format(enum.StrEnum):
    """Forms of the result on stdout."""

    table = "table"
    json = "json"


def plan(
    forecasts: Annotated[
        list[str], typer.Argument(metavar="FORECAST...", help="Forecast files, or shipped names.")
    ],
    profile: Annotated[
        list[str] | None,
        typer.Option(
            "--profile",
            metavar="NAME|FILE",
            help="Operating points to choose from; repeatable. Without it: every known profile "
            "of the forecast's model on a GPU that the fleet has.",
        ),
    ] = None,
    fleet: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="Hardware, site, rules and prices.")
    ] = "dgx-h200",
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Of plain, always, always:N, by-load; comma-separated. "
            "Default: plain, always and by-load where a profile has a drafter.",
        ),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Keep the whole plan as JSON."),
    ] = None,
) -> None:
    """Plan fleets for forecasts: GPUs, nodes, racks, kilowatts and dollars, by policy."""
    from capplan.files.writer import write_text
    from capplan.records.plan import Portfolio

    asked = _policies(policy)
    hardware, demands, profiles = _read(fleet, forecasts, profile or [])
    portfolio = Portfolio(
        plans=tuple(
            _plan_one(forecast, profiles, hardware, asked, alone=len(demands) == 1)
            for forecast in demands
        )
    )
    if output is not None:
        write_text(output, portfolio.model_dump_json(indent=2) + "\n")
    if form is Format.json:
        typer.echo(portfolio.model_dump_json(indent=2))
    else:
        _show(portfolio)


def _policies(text: str | None) -> tuple[str, ...] | None:
    from capplan.errors import Complaint, InputError

    if text is None:
        return None
    policies = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    wrong = [policy for policy in policies if not _POLICY.fullmatch(policy)]
    if wrong:
        rule = "each must be plain, always, always:N or by-load"
        raise InputError([Complaint("--policy", "", rule, repr(policy)) for policy in wrong])
    return policies


def _read(
    fleet: str, forecasts: list[str], profiles: list[str]
) -> tuple["Fleet", list["Forecast"], list["Profile"]]:
    """All files that are named, or every complaint about any of them."""
    from capplan.errors import InputError
    from capplan.files.catalogue import find
    from capplan.files.reader import read, read_forecast
    from capplan.records.fleet import Fleet
    from capplan.records.profile import Profile

    complaints: list[Complaint] = []

    def attempt(reading: Callable[[Path], T], kind: "Kind", name: str) -> T | None:
        try:
            return reading(find(kind, name))
        except InputError as error:
            complaints.extend(error.complaints)
            return None

    hardware = attempt(lambda path: read(path, Fleet), "fleets", fleet)
    demands = [attempt(read_forecast, "forecasts", name) for name in forecasts]
    measured = [attempt(lambda path: read(path, Profile), "profiles", name) for name in profiles]
    if complaints or hardware is None:
        raise InputError(complaints)
    return hardware, [d for d in demands if d], [m for m in measured if m]


def _plan_one(
    forecast: "Forecast",
    profiles: list["Profile"],
    hardware: "Fleet",
    policies: tuple[str, ...] | None,
    *,
    alone: bool,
) -> "Plan":
    from capplan import __version__
    from capplan.planner.chain import plan as make_plan

    # Several forecasts share one list of profiles: each takes those of its model.
    own = [p for p in profiles if alone or p.model.name == forecast.model]
    return make_plan(
        forecast, own or _known_profiles(forecast, hardware), hardware, policies, __version__
    )


def _known_profiles(forecast: "Forecast", hardware: "Fleet") -> list["Profile"]:
    """Every own or shipped profile of the model whose GPU stands in the fleet."""
    from capplan.errors import Complaint, InputError
    from capplan.files.catalogue import names, profiles_for
    from capplan.files.reader import read
    from capplan.records.profile import Profile

    held = {node.gpu for node in hardware.nodes.values()}
    found = [read(path, Profile) for path in profiles_for(forecast.model)]
    usable = [profile for profile in found if profile.deployment.gpu in held]
    if not usable:
        measured = ", ".join(sorted({profile.deployment.gpu for profile in found}))
        raise InputError(
            [
                Complaint(
                    place=f"forecast {forecast.name}",
                    key="model",
                    rule=f"needs a profile of this model on {', '.join(sorted(held))}",
                    found=f"{forecast.model}, profiled on {measured or 'nothing'}",
                    remedy=f"known profiles: {', '.join(names('profiles'))}; "
                    "name one with --profile, or measure with capplan profile",
                )
            ]
        )
    return usable


def _show(portfolio: "Portfolio") -> None:
    from rich.console import Console

    from capplan.report.content import report, together
    from capplan.report.text import show

    console = Console(highlight=False)
    for place, one in enumerate(portfolio.plans):
        if place:
            console.print()
        show(report(one), console)
    if len(portfolio.plans) > 1:
        console.print()
        show(together(portfolio), console)
