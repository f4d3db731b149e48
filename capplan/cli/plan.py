"""`capplan plan`: forecasts to fleets."""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from capplan.errors import Complaint, InputError
    from capplan.files.catalogue import Kind
    from capplan.records.fleet import Fleet
    from capplan.records.forecast import Forecast
    from capplan.records.plan import Plan, Portfolio
    from capplan.records.profile import Profile

N = TypeVar("N", "Fleet", "Forecast", "Profile")

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
    from capplan.errors import InputError
    from capplan.files.writer import write_text
    from capplan.records.plan import Portfolio

    asked = _policies(policy)
    inputs = _read(fleet, forecasts, profile or [])
    if output is not None:
        _check_output(output, inputs)
    try:
        plans = tuple(_plan_one(forecast, inputs, asked) for forecast in inputs.forecasts)
    except InputError as error:
        raise _located(error, inputs.paths) from error
    portfolio = Portfolio(plans=plans)
    if output is not None:
        write_text(output, portfolio.model_dump_json(indent=2) + "\n")
    if form is Format.json:
        typer.echo(portfolio.model_dump_json(indent=2))
    else:
        _show(portfolio)


@dataclass
class _Inputs:
    """What was read, and the file that each thing stands in, by the name complaints give it."""

    fleet: "Fleet"
    forecasts: list["Forecast"]
    profiles: list["Profile"]
    paths: dict[str, Path]


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


def _read(fleet: str, forecasts: list[str], profiles: list[str]) -> _Inputs:
    """All files that are named, or every complaint about any of them."""
    from capplan.errors import InputError
    from capplan.files.catalogue import find
    from capplan.files.reader import read, read_forecast
    from capplan.records.fleet import Fleet
    from capplan.records.profile import Profile

    complaints: list[Complaint] = []
    paths: dict[str, Path] = {}

    def attempt(reading: Callable[[Path], N], kind: "Kind", name: str) -> list[N]:
        try:
            path = find(kind, name)
            record = reading(path)
        except InputError as error:
            complaints.extend(error.complaints)
            return []
        paths[f"{kind.removesuffix('s')} {record.name}"] = path
        return [record]

    hardware = attempt(lambda path: read(path, Fleet), "fleets", fleet)
    demands = [d for name in forecasts for d in attempt(read_forecast, "forecasts", name)]
    measured = [
        m for name in profiles for m in attempt(lambda path: read(path, Profile), "profiles", name)
    ]
    if complaints:
        raise InputError(complaints)
    return _Inputs(hardware[0], demands, measured, paths)


def _check_output(output: Path, inputs: _Inputs) -> None:
    """A plan must not replace one of its own inputs."""
    from capplan.errors import Complaint, InputError

    try:
        taken = any(output.samefile(path) for path in inputs.paths.values())
    except OSError:  # not there yet, or no name for a file: that is the writer's to say
        return
    if taken:
        raise InputError([Complaint("--output", "", "is one of the inputs", str(output))])


def _plan_one(forecast: "Forecast", inputs: _Inputs, policies: tuple[str, ...] | None) -> "Plan":
    from capplan import __version__
    from capplan.planner.chain import plan as make_plan

    # Several forecasts share one list of profiles: each takes those of its model.
    alone = len(inputs.forecasts) == 1
    own = [p for p in inputs.profiles if alone or p.model.name == forecast.model]
    profiles = own or _known_profiles(forecast, inputs)
    return make_plan(forecast, profiles, inputs.fleet, policies, __version__)


def _known_profiles(forecast: "Forecast", inputs: _Inputs) -> list["Profile"]:
    """Every own or shipped profile of the model whose GPU stands in the fleet."""
    from capplan.errors import Complaint, InputError
    from capplan.files.catalogue import names, profiles_for
    from capplan.files.reader import read
    from capplan.records.profile import Profile

    held = {node.gpu for node in inputs.fleet.nodes.values()}
    found = [(path, read(path, Profile)) for path in profiles_for(forecast.model)]
    usable = [(path, profile) for path, profile in found if profile.deployment.gpu in held]
    if not usable:
        measured = ", ".join(sorted({profile.deployment.gpu for _, profile in found}))
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
    inputs.paths.update({f"profile {profile.name}": path for path, profile in usable})
    return [profile for _, profile in usable]


def _located(error: "InputError", paths: dict[str, Path]) -> "InputError":
    """Complaints of the planner, with the line of the file that each is about."""
    from dataclasses import replace

    from capplan.errors import InputError
    from capplan.files.document import read_document

    located = []
    for complaint in error.complaints:
        path = paths.get(complaint.place)
        # A pipe has been read to its end: it keeps the name alone.
        if path is not None and path.is_file():
            keys = tuple(int(k) if k.isdigit() else k for k in complaint.key.split("."))
            located.append(replace(complaint, place=read_document(path).place(keys)))
        else:
            located.append(complaint)
    return InputError(located)


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
