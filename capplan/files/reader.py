"""Reads capplan's own files into records; a bad file says all that is wrong with it at once."""

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from capplan.errors import InputError
from capplan.files.document import compose
from capplan.files.durations import resolve_durations
from capplan.files.findings import Findings, KeyPath
from capplan.files.series import read_series
from capplan.files.tables import expand_tables
from capplan.files.translate import Tree, complain
from capplan.records.base import Record
from capplan.records.forecast import Forecast, Rate

R = TypeVar("R", bound=Record)


def read(path: Path, kind: type[R]) -> R:
    """Reads one record from a file.

    Raises:
        InputError: With every complaint about the file, in file order.
    """
    return _read(path, kind)[0]


def read_forecast(path: Path) -> Forecast:
    """Reads a forecast, its series taken from the CSV files that it names.

    What the file sets and what it leaves to defaults stays known (`model_fields_set`).

    Raises:
        InputError: With every complaint about the file and its series.
    """
    forecast, findings = _read(path, Forecast)
    values: dict[KeyPath, tuple[float, ...]] = {}
    for at, rate in _rates(forecast):
        try:
            if rate.series is not None:
                values[at] = read_series(path.parent, rate.series)
            elif rate.values_per_s is not None:
                values[at] = rate.values_per_s
        except InputError as error:
            findings.add_elsewhere(error.complaints)
    _check_lengths(values, findings)
    findings.check()
    return _with_values(forecast, values)


def _read(path: Path, kind: type[R]) -> tuple[R, Findings]:
    value, findings = compose(path)
    tables = expand_tables(value, findings)
    durations = resolve_durations(value, kind, findings)
    try:
        record = kind.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        tree = Tree(value, kind, tables, durations)
        complain(error.errors(include_url=False), tree, findings)
        findings.check()
        raise
    findings.check()
    return record, findings


def _rates(forecast: Forecast) -> list[tuple[KeyPath, Rate]]:
    """Every rate of a forecast with its place."""
    rates: list[tuple[KeyPath, Rate | None]] = [(("rate",), forecast.rate)]
    rates += [
        (("classes", index, "rate"), traffic.rate) for index, traffic in enumerate(forecast.classes)
    ]
    if forecast.band is not None:
        rates += [
            (("band", "quantiles", name), rate) for name, rate in forecast.band.quantiles.items()
        ]
    return [(at, rate) for at, rate in rates if rate is not None]


def _check_lengths(values: dict[KeyPath, tuple[float, ...]], findings: Findings) -> None:
    """All series of a forecast share its time axis, so they are equally long."""
    if not values:
        return
    (first, expected), *others = values.items()
    for at, series in others:
        if len(series) != len(expected):
            name = ".".join(map(str, first))
            rule = f"must have as many values as {name}, which has {len(expected)}"
            findings.add(at, rule, found=str(len(series)))


def _with_values(forecast: Forecast, values: dict[KeyPath, tuple[float, ...]]) -> Forecast:
    tree = forecast.model_dump(mode="json", exclude_unset=True)
    for at, series in values.items():
        holder: Any = tree
        for part in at[:-1]:
            holder = holder[part]
        holder[at[-1]] = {"values_per_s": series}
    return Forecast.model_validate_json(json.dumps(tree), strict=True)
