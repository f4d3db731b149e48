"""ServeGen: rates of a model's clients, and hourly rates derived from them.

Source: https://github.com/alibaba/ServeGen, Apache-2.0. A folder holds for each client
`chunk-N-trace.csv` (window's start, requests a second, spread of gaps and its fit) and
`chunk-N-dataset.json` (for each window's start the shares of prompt and output lengths).
"""

import ast
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.importers.traces import columns
from capplan.importers.traces.comma import blocks
from capplan.importers.traces.how import How
from capplan.importers.traces.text import whole
from capplan.records.history import FileRead
from capplan.records.trace import Counted, Floats, Reading, Sample, Seen

NAME = "ServeGen clients"
HOURLY = "ServeGen hourly rates"
HOURLY_COLUMNS = ("hour_from_start", "mean_rps")
_MOST_HOURS = 200_000
NO_GAPS = "rates by window: bursts shorter than a window are not in the data"


def is_folder(path: Path) -> bool:
    """Whether a folder holds such clients."""
    return path.is_dir() and any(path.glob("chunk-*-trace.csv"))


def read_folder(path: Path) -> Reading:
    """Rate of all clients together, and their lengths weighted by their requests.

    Raises:
        InputError: A file is damaged, or clients differ in their windows.
    """
    rates: list[tuple[str, Floats]] = []
    starts: Floats | None = None
    for file in sorted(path.glob("chunk-*-trace.csv")):
        windows = _windows(file)
        if starts is not None and not np.array_equal(starts, windows[0]):
            raise InputError([Complaint(str(file), "", "must have the windows of the others")])
        starts = windows[0]
        rates.append((file.name.replace("trace.csv", "dataset.json"), windows[1]))
    assert starts is not None
    total = np.sum([rate for _, rate in rates], axis=0)
    step = float(starts[1] - starts[0])
    seen, without = _seen(path, starts, rates)
    history = Counted(0.0, step, total[None, :], ("all",), dated=False, seen=(seen,))
    read = FileRead(
        place=str(path), format=NAME, rows=len(starts) * len(rates), kept=len(starts) * len(rates)
    )
    caveats = [NO_GAPS]
    if seen is not None and without > 0:
        caveats.append(f"no lengths for clients with {without:.0%} of the requests")
    return Reading(None, history, (read,), tuple(caveats))


def read_hourly(path: Path, how: How) -> Reading:
    """One column of hourly rates; hours that are missing stay unknown.

    Raises:
        InputError: Bad rows.
    """
    hours: list[float] = []
    rates: list[float] = []
    seen = 0
    for numbers, cells in blocks(path, HOURLY_COLUMNS, how.ledger):
        for place, line in enumerate(numbers):
            seen += 1
            row = [_number(path, line, name, cells[name][place], how) for name in HOURLY_COLUMNS]
            if None not in row:
                hours.append(row[0] or 0.0)
                rates.append(row[1] or 0.0)
    how.ledger.check()
    if len(hours) < 2 or len(set(hours)) < len(hours):
        rule = "needs two hours or more, each once"
        raise InputError([Complaint(str(path), HOURLY_COLUMNS[0], rule, str(len(hours)))])
    places = np.array(hours, dtype=np.int64)
    known = np.full(places.max() - places.min() + 1, np.nan)
    known[places - places.min()] = rates
    history = Counted(0.0, 3600.0, known[None, :], ("all",), dated=False, seen=(None,))
    read = FileRead(
        place=str(path), format=HOURLY, rows=seen, kept=len(rates), bad=seen - len(rates)
    )
    return Reading(None, history, (read,), (NO_GAPS,))


def _windows(path: Path) -> tuple[Floats, Floats]:
    """Starts [s] and rates [1/s] of one client's windows."""
    try:
        rows = [row[:2] for row in csv.reader(whole(path).splitlines())]
        starts, rates = np.array(rows, dtype=np.float64).T
    except ValueError as error:
        rule = "must hold a window's start and rate in each line"
        raise InputError([Complaint(str(path), "", rule)]) from error
    even = len(starts) > 1 and np.allclose(np.diff(starts), starts[1] - starts[0])
    if not (even and np.isfinite(rates).all() and (rates >= 0).all()):
        rule = "must hold windows of one width, with rates of at least 0"
        raise InputError([Complaint(str(path), "", rule)])
    return starts, rates


def _seen(
    folder: Path, starts: Floats, rates: list[tuple[str, Floats]]
) -> tuple[Seen | None, float]:
    """Lengths of all clients that have some, and the part of the requests that has none."""
    found: dict[str, list[tuple[Floats, Floats]]] = {"input_tokens": [], "output_tokens": []}
    step, described = float(starts[1] - starts[0]), 0.0
    for name, rate in rates:
        file = folder / name
        if not file.is_file():
            continue
        for begin, end, shares in _spans(file, float(starts[-1]) + step):
            requests = float(rate[(starts >= begin) & (starts < end)].sum()) * step
            described += requests
            for key, lines in found.items():
                tokens = np.array(list(shares[key]), dtype=np.float64)
                lines.append((tokens, np.array(list(shares[key].values())) * requests))
    total = sum(float(rate.sum()) for _, rate in rates) * step
    if described == 0:
        return None, 1.0
    prompt, output = (_sample(lines) for lines in found.values())
    return Seen(prompt, output, count=described), 1 - described / total


def _spans(path: Path, end_s: float) -> list[tuple[float, float, dict[str, Any]]]:
    """Begin and end of each window of lengths, with its shares by length."""
    try:
        tree = json.loads(whole(path))
        begins = sorted(tree, key=float)
        ends = [*map(float, begins[1:]), end_s]
        return [
            (float(begin), end, {key: ast.literal_eval(tree[begin][key]) for key in _LENGTHS})
            for begin, end in zip(begins, ends, strict=True)
        ]
    except (ValueError, KeyError, SyntaxError, TypeError) as error:
        rule = "must hold shares of input_tokens and output_tokens by window"
        raise InputError([Complaint(str(path), "", rule)]) from error


_LENGTHS = ("input_tokens", "output_tokens")


def _sample(lines: list[tuple[Floats, Floats]]) -> Sample:
    """Weights added up by length; lengths of 0 say nothing."""
    tokens, place = np.unique(np.concatenate([line[0] for line in lines]), return_inverse=True)
    weight = np.bincount(place, np.concatenate([line[1] for line in lines])).astype(np.float64)
    keep = (tokens >= 1) & (weight > 0)
    return Sample(tokens[keep], weight[keep])


def _number(path: Path, line: int, name: str, value: Any, how: How) -> float | None:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    whole_hour = name != HOURLY_COLUMNS[0] or (number <= _MOST_HOURS and number.is_integer())
    if number >= 0 and np.isfinite(number) and whole_hour:
        return number
    rule = "must be a whole number of hours" if not whole_hour else "must be a number of at least 0"
    how.ledger.add(Complaint(f"{path}:{line}", name, rule, columns.shown(value)))
    return None
