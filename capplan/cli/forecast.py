"""`capplan forecast`: traces and monitoring to a forecast."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli import forecast_options as options
from capplan.cli import forecast_output as output_of
from capplan.cli.inputs import Format
from capplan.cli.simulated import working

if TYPE_CHECKING:
    from capplan.forecaster.kinds import Rule
    from capplan.forecaster.observe import Wishes
    from capplan.importers.traces.how import How
    from capplan.records.history import History
    from capplan.records.trace import Reading


def forecast(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...", help="Traces, logs or rates: files or folders, also gzip."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the forecast, and a CSV file beside it."
        ),
    ] = None,
    update: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Renew the traffic of a forecast; what people wrote stays."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model to plan for, in a new forecast.")
    ] = None,
    objectives: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[CLASS:]LIST",
            help="As ttft_p99=2s,tpot_p95=50ms, in a new forecast; repeatable.",
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[CLASS:]NAME",
            help="Which acceptance table of a profile applies, in a new forecast; repeatable.",
        ),
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="LIST",
            help="Columns of an unknown table: arrival=ts:ms,prompt=in,output=out, and if there "
            "are class=, cached=, prefix=, failed=. Dots go into nested JSON.",
        ),
    ] = None,
    classes: Annotated[
        str,
        typer.Option(
            metavar="RULE", help="column (where there is one), one, file, prefix:N or lengths:N."
        ),
    ] = "column",
    step: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Interval of the rates. Default: by the history."),
    ] = None,
    ahead: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Plan for the time after the history, as 7d, instead of the history itself.",
        ),
    ] = None,
    at: Annotated[
        str, typer.Option(metavar="QUANTILE", help="Of the band that --ahead plans for.")
    ] = "p90",
    zone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of times written without one, and to show times in."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="MOMENT", help="Of a trace that counts from nought."),
    ] = None,
    cache: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="TOKENS", help="Size of the prefix cache that hashes are replayed in."
        ),
    ] = None,
    skip_bad: Annotated[
        int, typer.Option(min=0, metavar="N", help="Read on over so many bad rows.")
    ] = 0,
    prometheus: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask a Prometheus server about vLLM, SGLang or TRT-LLM."),
    ] = None,
    window: Annotated[
        str, typer.Option(metavar="DURATION", help="How far back Prometheus is asked.")
    ] = "14d",
    selector: Annotated[
        str, typer.Option(metavar="LABELS", help='Which series, as model_name="m".')
    ] = "",
    form: Annotated[
        Format, typer.Option("--format", help="What goes to stdout.", show_choices=True)
    ] = Format.table,
) -> None:
    """Make or renew a forecast from the requests that were seen; look at them first without -o."""
    from capplan.forecaster.observe import observe

    _check(sources or [], prometheus, output, update)
    rule, by_file = options.classes(classes)
    hours, quantile = options.hours_ahead(ahead), options.quantile(at)
    wishes = _wishes(rule, step, hours, start, zone)
    how = _how(mapping, zone, cache, skip_bad)
    with working("reading"):
        reading = _read(sources or [], how, by_file, prometheus, (window, selector))
        history = observe(reading, wishes)
    target = output or update
    if target is not None:
        wanted = (model, objectives or [], workload or [])
        said = output_of.said(target, update, wanted, history)
        output_of.write(target, update, history, said, quantile if hours else None)
    if form is Format.json:
        typer.echo(history.model_dump_json(indent=2))
    else:
        _show(history)


def _check(
    sources: list[str], prometheus: str | None, output: Path | None, update: Path | None
) -> None:
    """What to read is named, and a forecast is not written onto a source."""
    from capplan.errors import Complaint, InputError

    if not sources and prometheus is None:
        raise InputError([Complaint("capplan forecast", "", "needs a SOURCE or --prometheus URL")])
    for target in (output, update):
        if target is None:
            continue
        names = {target.resolve(), output_of.beside(target).resolve()}
        if names & {Path(source).resolve() for source in sources}:
            raise InputError([Complaint("--output", "", "is one of the sources", str(target))])


def _wishes(
    rule: "Rule", step: str | None, hours: int | None, start: str | None, zone: str | None
) -> "Wishes":
    from capplan import __version__
    from capplan.forecaster.observe import Wishes

    wishes = Wishes(__version__, rule, options.duration_s("--step", step))
    wishes = replace(wishes, start=options.start(start), ahead_h=hours or wishes.ahead_h)
    return replace(wishes, zone=options.zone(zone) or wishes.zone)


def _how(mapping: str | None, zone: str | None, cache: float | None, skip_bad: int) -> "How":
    from capplan.importers.traces.how import How
    from capplan.importers.traces.layout import mapped
    from capplan.importers.traces.ledger import Ledger

    layout = None if mapping is None else mapped(mapping)
    return How(Ledger(skip_bad), layout, options.zone(zone), cache)


def _read(
    sources: list[str], how: "How", by_file: bool, url: str | None, asked: tuple[str, str]
) -> "Reading":
    from capplan.importers.traces.read import read

    monitored = None
    if url is not None:
        from capplan.importers.prometheus.history import ask

        window_s = options.duration_s("--window", asked[0])
        assert window_s is not None  # it has a default
        monitored = ask(url, window_s, asked[1])
    paths = [Path(source) for source in sources]
    return read(paths, how, kinds_by_file=by_file, monitored=monitored)


def _show(history: "History") -> None:
    from rich.console import Console

    from capplan.report.history import report
    from capplan.report.text import show

    show(report(history), Console(highlight=False))
