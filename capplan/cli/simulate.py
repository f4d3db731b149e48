"""`capplan simulate`: a replica's load simulated, beside what a plan predicts of it."""

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.inputs import DEFAULT_FLEET, Format, Inputs, located, policies, read_all

if TYPE_CHECKING:
    from capplan.physics.engine import Engine, Outcome, Requests
    from capplan.planner.trial import Arrivals
    from capplan.records.forecast import Forecast
    from capplan.records.simulation import Simulation


class Router(enum.StrEnum):
    """How requests are given to replicas."""

    round_robin = "round-robin"
    least_loaded = "least-loaded"


@dataclass(frozen=True)
class _Setting:
    """How requests come and where they go."""

    arrivals: "Arrivals"
    replicas: int
    router: Router
    seed: int

    def simulate(self, engine: "Engine", requests: "Requests", rate_per_s: float) -> "Outcome":
        """Runs requests at a rate a replica [1/s]."""
        from capplan.simulator.fleet import simulate_fleet

        total = rate_per_s * self.replicas
        return simulate_fleet(engine, requests, total, self.replicas, self.router.value)


def simulate(
    forecast: Annotated[str, typer.Argument(metavar="FORECAST", help="File, or shipped name.")],
    profile: Annotated[
        list[str] | None,
        typer.Option("--profile", metavar="NAME|FILE", help="As in capplan plan; repeatable."),
    ] = None,
    fleet: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="As in capplan plan.")
    ] = DEFAULT_FLEET,
    policy: Annotated[str | None, typer.Option(metavar="LIST", help="As in capplan plan.")] = None,
    load: Annotated[
        str,
        typer.Option(metavar="LIST", help="Rates to show, as parts of the predicted capacity."),
    ] = "0.5,0.8",
    arrivals: Annotated[
        str, typer.Option(metavar="KIND", help="poisson, or gamma:CV for gaps with that spread.")
    ] = "poisson",
    replicas: Annotated[
        int, typer.Option(min=1, max=1000, help="Behind one router; loads are a replica's.")
    ] = 1,
    router: Annotated[Router, typer.Option(show_choices=True)] = Router.round_robin,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32, help="Of arrivals, lengths and acceptance.")
    ] = 1,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
) -> None:
    """Simulate one replica at the peak's mix of requests, beside what the plan predicts of it."""
    from capplan.errors import InputError

    loads, drawn = _loads(load), _arrivals(arrivals)
    asked = policies(policy)
    inputs = read_all(fleet, [forecast], profile or [])
    try:
        found = _simulation(
            inputs.forecasts[0], inputs, asked, loads, _Setting(drawn, replicas, router, seed)
        )
    except InputError as error:
        raise located(error, inputs.paths) from error
    if form is Format.json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        _show(found)


def _arrivals(text: str) -> "Arrivals":
    from capplan.errors import Complaint, InputError
    from capplan.simulator.arrivals import gamma, poisson

    if text == "poisson":
        return poisson
    kind, _, spread = text.partition(":")
    try:
        cv = float(spread)
    except ValueError:
        cv = 0.0
    if kind != "gamma" or not 0 < cv <= 20:
        rule = "must be poisson, or gamma:CV with a CV above 0 and at most 20"
        raise InputError([Complaint("--arrivals", "", rule, repr(text))])
    return lambda count, rng: gamma(count, cv, rng)


def _loads(text: str) -> tuple[float, ...]:
    from capplan.errors import Complaint, InputError

    loads, complaints = [], []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = 0.0
        if 0 < value <= 2:
            loads.append(value)
        else:
            rule = "needs numbers above 0 and at most 2, comma-separated"
            complaints.append(Complaint("--load", "", rule, repr(part)))
    if complaints:
        raise InputError(complaints)
    return tuple(loads)


def _simulation(
    forecast: "Forecast",
    inputs: Inputs,
    asked: tuple[str, ...] | None,
    loads: tuple[float, ...],
    setting: _Setting,
) -> "Simulation":
    from rich.console import Console
    from rich.progress import track

    from capplan import __version__
    from capplan.planner.chain import outcomes
    from capplan.planner.comparison import compare
    from capplan.records.simulation import Simulation
    from capplan.simulator.jit import compiled

    planned, caveats = outcomes(forecast, inputs.profiles_of(forecast), inputs.fleet, asked)
    screen = Console(stderr=True)
    shown = track(
        planned, "simulating", console=screen, transient=True, disable=not screen.is_terminal
    )
    return Simulation(
        capplan=__version__,
        forecast=forecast.name,
        model=forecast.model,
        seed=setting.seed,
        compiled=compiled(),
        policies=tuple(
            compare(one, loads, setting.simulate, setting.arrivals, setting.seed) for one in shown
        ),
        caveats=tuple(caveats),
    )


def _show(simulation: "Simulation") -> None:
    from rich.console import Console

    from capplan.report.simulation import report
    from capplan.report.text import show

    show(report(simulation), Console(highlight=False))
