"""`capplan plan`: forecasts to fleets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.inputs import Format, Inputs, located, policies, read_all
from capplan.cli.on_gpus import asked_for, fleet_of
from capplan.cli.simulated import DEFAULT_SEED, Pools, Prefill, stage, unsimulated, working

if TYPE_CHECKING:
    from capplan.cli.on_gpus import Served
    from capplan.planner.chain import Asked
    from capplan.records.forecast import Forecast
    from capplan.records.plan import Plan, Portfolio


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
    on: Annotated[
        str | None,
        typer.Option(
            metavar="GPU:N",
            help="GPUs that a replica may have at most, as b200-sxm:8: known profiles on them, or "
            "one composed of published operator times where the model has none.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE", help="Needs --on. Serve this model instead of the forecast's."
        ),
    ] = None,
    tp: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=4096,
            help="Needs --on. Compose a layout of so many GPUs. Default: the fewest that hold "
            "weights and a cache worth having.",
        ),
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Hardware, site, rules and prices. Default: dgx-h200, or with --on a known "
            "fleet that has the GPU.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Of plain, always, always:N, by-load; comma-separated. "
            "Default: plain, always and by-load where a profile has a drafter.",
        ),
    ] = None,
    pools: Annotated[
        Pools,
        typer.Option(show_choices=True, help="Whether classes may be given replicas of their own."),
    ] = Pools.auto,
    prefill: Annotated[
        Prefill,
        typer.Option(
            show_choices=True, help="Process prompts beside decoding or on engines of their own."
        ),
    ] = Prefill.beside,
    screen: Annotated[
        bool,
        typer.Option("--screen", help="Do not simulate: quick, and not purchase-grade."),
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32, help="Of the simulated requests.")
    ] = DEFAULT_SEED,
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
    from capplan.planner.chain import Asked
    from capplan.records.plan import Portfolio

    simulated = None if screen else stage(seed)
    why_not = unsimulated(screen=screen)
    asked = Asked(policies(policy), pools.value, prefill.value, simulated, why_not)
    served = asked_for(on, model, tp, fleet, profile)
    inputs = read_all(fleet_of(served, fleet), forecasts, profile or [])
    if output is not None:
        _check_output(output, inputs)
    try:
        with working("simulating" if asked.stage else "planning"):
            plans = tuple(
                _plan_one(forecast, inputs, asked, served) for forecast in inputs.forecasts
            )
    except InputError as error:
        raise located(error, inputs.paths) from error
    portfolio = Portfolio(plans=plans)
    if output is not None:
        write_text(output, portfolio.model_dump_json(indent=2) + "\n")
    if form is Format.json:
        typer.echo(portfolio.model_dump_json(indent=2))
    else:
        _show(portfolio)


def _check_output(output: Path, inputs: Inputs) -> None:
    """A plan must not replace one of its own inputs."""
    from capplan.errors import Complaint, InputError

    try:
        taken = any(output.samefile(path) for path in inputs.paths.values())
    except OSError:  # not there yet, or no name for a file: that is the writer's to say
        return
    if taken:
        raise InputError([Complaint("--output", "", "is one of the inputs", str(output))])


def _plan_one(forecast: "Forecast", inputs: Inputs, asked: "Asked", served: "Served") -> "Plan":
    from capplan import __version__
    from capplan.planner.chain import plan as make_plan

    if served.choice is None:
        profiles = inputs.profiles_of(forecast)
    else:
        from capplan.cli.on_the_fly import profiles_on

        profiles = profiles_on(served.model or forecast.model, served.choice)
    if served.model is not None:
        forecast = forecast.model_copy(update={"model": profiles[0].model.name})
    return make_plan(forecast, profiles, inputs.fleet, asked, __version__)


def _show(portfolio: "Portfolio") -> None:
    from rich.console import Console

    from capplan.report.content import report
    from capplan.report.fleet_table import together
    from capplan.report.text import show

    console = Console(highlight=False)
    for place, one in enumerate(portfolio.plans):
        if place:
            console.print()
        show(report(one), console)
    if len(portfolio.plans) > 1:
        console.print()
        show(together(portfolio), console)
