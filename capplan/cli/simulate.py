"""`capplan simulate`: a replica's load simulated, beside what a plan predicts of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli import simulate_options as options
from capplan.cli.inputs import DEFAULT_FLEET, Format, Inputs, located, policies, read_all
from capplan.cli.simulated import DEFAULT_SEED, Pools, Prefill, working

if TYPE_CHECKING:
    from capplan.planner.chain import Asked
    from capplan.records.caveat import Caveat
    from capplan.records.plan import Plan
    from capplan.records.simulation import SimulatedPolicy, Simulation


_LOADS = "0.5,0.8"


def simulate(
    forecast: Annotated[
        str,
        typer.Argument(
            metavar="FORECAST|PLAN", help="File or shipped name, or a plan kept with -o."
        ),
    ],
    profile: Annotated[
        list[str] | None,
        typer.Option("--profile", metavar="NAME|FILE", help="As in capplan plan; repeatable."),
    ] = None,
    fleet: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="As in capplan plan.")
    ] = DEFAULT_FLEET,
    policy: Annotated[str | None, typer.Option(metavar="LIST", help="As in capplan plan.")] = None,
    pools: Annotated[
        Pools | None,
        typer.Option(show_choices=True, help="As in capplan plan. [default: shared]"),
    ] = None,
    prefill: Annotated[
        Prefill | None,
        typer.Option(show_choices=True, help="As in capplan plan. [default: beside]"),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Rates to show, as parts of the predicted capacity; a PLAN has its own peak. "
            "[default: 0.5,0.8]",
        ),
    ] = None,
    in_flight: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Also a closed loop: so many requests in flight, as benchmarks do."
        ),
    ] = None,
    arrivals: Annotated[
        str, typer.Option(metavar="KIND", help="poisson, or gamma:CV for gaps with that spread.")
    ] = "poisson",
    replicas: Annotated[
        int, typer.Option(min=1, max=1000, help="Behind one router; loads are a replica's.")
    ] = 1,
    router: Annotated[options.Router, typer.Option(show_choices=True)] = options.Router.round_robin,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32, help="Of arrivals, lengths and acceptance.")
    ] = DEFAULT_SEED,
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
) -> None:
    """Simulate a replica at the peak's mix of requests, beside what the plan predicts of it."""
    from capplan.planner.chain import Asked

    parts, drawn = options.loads(_LOADS if load is None else load), options.arrivals(arrivals)
    asked = policies(policy)
    setting = options.Setting(drawn, replicas, router, seed)
    if forecast.endswith(".json"):
        options.refuse_beside_plan(pools=pools, prefill=prefill, load=load, in_flight=in_flight)
        found = _of_plan(forecast, fleet, profile or [], asked, setting)
    else:
        inputs = read_all(fleet, [forecast], profile or [])
        where = prefill or Prefill.beside
        options.check_split(setting, split=where is not Prefill.beside)
        how = Asked(asked, (pools or Pools.shared).value, where.value)
        found = _of_forecast(inputs, how, parts, options.counts(in_flight), setting)
    if form is Format.json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        _show(found)


def _of_forecast(
    inputs: Inputs,
    asked: "Asked",
    loads: tuple[float, ...],
    counts: tuple[int, ...],
    setting: options.Setting,
) -> "Simulation":
    """Policies planned by the balance alone, and their replicas simulated."""
    from capplan.errors import InputError
    from capplan.planner.chain import outcomes
    from capplan.planner.comparison import compare
    from capplan.planner.in_flight import compare_in_flight
    from capplan.records.simulation import SimulatedPolicy
    from capplan.simulator.closed import simulate_closed

    forecast = inputs.forecasts[0]
    try:
        with working("simulating"):
            planned, caveats = outcomes(forecast, inputs.profiles_of(forecast), inputs.fleet, asked)
            found = tuple(
                SimulatedPolicy(
                    policy=one.plan.policy,
                    infeasible=one.plan.infeasible,
                    pools=tuple(
                        compare(
                            pool,
                            loads,
                            setting.stage,
                            compare_in_flight(pool, counts, simulate_closed, setting.seed),
                        )
                        for pool in one.pools
                    ),
                )
                for one in planned
            )
    except InputError as error:
        raise located(error, inputs.paths) from error
    return _simulation(forecast.name, forecast.model, setting, found, caveats)


def _of_plan(
    name: str,
    fleet: str,
    profiles: list[str],
    asked: tuple[str, ...] | None,
    setting: options.Setting,
) -> "Simulation":
    """A kept plan's replicas simulated at its own peak, beside what the plan says of them."""
    from capplan.files.catalogue import find
    from capplan.files.reader import read
    from capplan.planner.comparison import compare_points
    from capplan.planner.replanned import pools_of
    from capplan.records.fleet import Fleet
    from capplan.records.profile import Profile
    from capplan.records.simulation import SimulatedPolicy

    plan = _kept(Path(name))
    _check_planned(name, plan, asked or ())
    pools = [pool for policy in plan.policies for pool in policy.pools]
    options.check_split(setting, split=any(pool.prefill is not None for pool in pools))
    used = {pool.service.profile for pool in pools}
    given = [read(find("profiles", one), Profile) for one in profiles]
    known = {one.name: one for one in given}
    known |= {one: read(find("profiles", one), Profile) for one in sorted(used - set(known))}
    hardware = read(find("fleets", fleet), Fleet)
    found = []
    with working("simulating"):
        for policy in plan.policies:
            if asked is not None and policy.policy not in asked:
                continue
            again = pools_of(policy, plan.demand, known, hardware)
            found.append(
                SimulatedPolicy(
                    policy=policy.policy,
                    infeasible=policy.infeasible,
                    pools=tuple(
                        compare_points(
                            pool, one.service.capacity_per_s, [one.at_peak], setting.stage
                        )
                        for pool, one in zip(again, policy.pools, strict=True)
                    ),
                )
            )
    return _simulation(plan.forecast, plan.model, setting, tuple(found), [])


def _kept(path: Path) -> "Plan":
    """The one plan of a file.

    Raises:
        InputError: There is no such file, it is no plan, or it holds several.
    """
    from capplan.errors import Complaint, InputError
    from capplan.files.reader import read
    from capplan.records.plan import Portfolio

    plans = read(path, Portfolio).plans
    if len(plans) != 1:
        rule = "must hold one plan to be simulated"
        raise InputError([Complaint(str(path), "plans", rule, str(len(plans)))])
    return plans[0]


def _check_planned(name: str, plan: "Plan", asked: tuple[str, ...]) -> None:
    """Policies that are asked for must be in the plan.

    Raises:
        InputError: Naming those that are not.
    """
    from capplan.errors import Complaint, InputError

    planned = [one.policy for one in plan.policies]
    rule = f"is not in {name}, which holds {', '.join(planned)}"
    missing = [policy for policy in asked if policy not in planned]
    if missing:
        raise InputError([Complaint("--policy", policy, rule) for policy in missing])


def _simulation(
    forecast: str,
    model: str,
    setting: options.Setting,
    found: "tuple[SimulatedPolicy, ...]",
    caveats: "list[Caveat]",
) -> "Simulation":
    from capplan import __version__
    from capplan.records.simulation import Simulation
    from capplan.simulator.jit import compiled

    return Simulation(
        capplan=__version__,
        forecast=forecast,
        model=model,
        seed=setting.seed,
        compiled=compiled(),
        policies=found,
        caveats=tuple(caveats),
    )


def _show(simulation: "Simulation") -> None:
    from rich.console import Console

    from capplan.report.simulation import report
    from capplan.report.text import show

    show(report(simulation), Console(highlight=False))
