"""What `capplan forecast` writes: a new forecast, or an old one with new traffic."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from capplan.cli import forecast_options as options

if TYPE_CHECKING:
    from capplan.forecaster.make import Made, Said
    from capplan.records.forecast import BandQuantile, Forecast
    from capplan.records.history import History


def said(
    target: Path,
    update: Path | None,
    wanted: tuple[str | None, list[str], list[str]],
    history: "History",
) -> "Said":
    """The people's part: from the old forecast, or from the options."""
    from capplan.errors import Complaint, InputError
    from capplan.forecaster.make import Said

    names = [seen.name for seen in history.classes]
    model, objectives, workloads = wanted
    given = options.objectives(objectives, names)
    if update is not None:
        old = _old(update)
        own = {traffic.name: traffic.objectives for traffic in old.classes}
        spare = next(iter(own.values()))
        # A class the forecast lacks is refused when the two are put together.
        return Said(old.name, old.model, {name: own.get(name, spare) for name in names})
    if model is None:
        remedy = "name the model to plan for, as its profiles do: --model NAME"
        raise InputError([Complaint("--model", "", "a new forecast needs one", remedy=remedy)])
    return Said(target.stem, model, given, options.workloads(workloads, names))


def _old(path: Path) -> "Forecast":
    from capplan.files.reader import read
    from capplan.records.forecast import Forecast

    return read(path, Forecast)


def beside(target: Path) -> Path:
    """The CSV file of a forecast's series."""
    return target.with_suffix(".csv")


def write(
    target: Path,
    update: Path | None,
    history: "History",
    wishes: "Said",
    at: "BandQuantile | None",
) -> None:
    """The CSV file first, so that the forecast never names one that is not there."""
    from capplan.files.columns import to_csv
    from capplan.files.writer import write_record, write_text
    from capplan.forecaster.make import make

    made = make(history, wishes, beside(target).name, at)
    time = made.forecast.time
    columns = {name: line.tolist() for name, line in made.columns.items()}
    series = to_csv(time.start, time.step_s, columns)
    if update is None:
        write_text(beside(target), series)
        write_record(target, made.forecast)
    else:
        text = _renewed(update, made)
        write_text(beside(target), series)
        write_text(target, text)


def _renewed(path: Path, made: "Made") -> str:
    """Text of a forecast with new traffic, people's comments in their places where that works."""
    from yaml import YAMLError

    from capplan.files.emitter import to_yaml
    from capplan.files.mend import mended
    from capplan.files.text import read_text
    from capplan.forecaster.renew import CLASS_TRAFFIC, TRAFFIC, renewed

    whole = renewed(_old(path), made.forecast)
    fresh = to_yaml(whole)
    keys = [key for key in TRAFFIC if key != "time"]
    try:
        return mended(read_text(path, 16 << 20), fresh, ["time", *keys], CLASS_TRAFFIC)
    except (ValueError, YAMLError):
        typer.echo(f"{path}: cannot be changed in place: its comments are lost", err=True)
        return fresh
