"""OpenAI's usage of completions by time bucket: pages of the API as JSON, or the export as CSV.

Source: https://platform.openai.com/docs/api-reference/usage/completions. A bucket says how many
requests and tokens there were, not how they were spread: lengths must come from elsewhere.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.importers.traces import columns
from capplan.importers.traces.how import How
from capplan.records.history import FileRead
from capplan.records.trace import Counted, Reading

NAME = "OpenAI usage export"
NEEDED = ("start_time", "end_time", "num_model_requests", "input_tokens", "output_tokens")
_MOST_BUCKETS = 200_000
CAVEAT = (
    "usage buckets give means of lengths only: {prompt:,.0f} prompt and {output:,.0f} output "
    "tokens a request, {cached:.0%} of the prompts cached"
)


def matches(tree: Any) -> bool:
    """Whether a JSON document is a page of usage."""
    return isinstance(tree, dict) and tree.get("object") == "page"


def read_pages(path: Path, tree: Any, how: How) -> Reading:
    """Rates of a page of the API.

    Raises:
        InputError: As `_counted`.
    """
    if not _is_page(tree):
        rule = "must hold data, a list of buckets with a list of results each"
        raise InputError([Complaint(str(path), "", rule)])
    rows = [
        (place, {"start_time": bucket.get("start_time"), "end_time": bucket.get("end_time"), **one})
        for place, bucket in enumerate(tree["data"], 1)
        for one in bucket.get("results") or [dict.fromkeys(NEEDED[2:], 0)]
    ]
    return _counted(path, rows, how)


def _is_page(tree: Any) -> bool:
    buckets = tree.get("data")
    return isinstance(buckets, list) and all(
        isinstance(bucket, dict)
        and all(isinstance(one, dict) for one in bucket.get("results") or [])
        for bucket in buckets
    )


def read_rows(path: Path, blocks: Iterable[Any], how: How) -> Reading:
    """Rates of an exported table.

    Raises:
        InputError: As `_counted`.
    """
    rows = [
        (line, {name: cells[name][place] for name in cells})
        for lines, cells in blocks
        for place, line in enumerate(lines)
    ]
    return _counted(path, rows, how)


def _counted(path: Path, rows: list[tuple[int, dict[str, Any]]], how: How) -> Reading:
    """Buckets of one width in a row, one kind a model.

    Raises:
        InputError: No buckets, of different widths, or bad ones.
    """
    good = [found for line, row in rows if (found := _numbers(path, line, row, how)) is not None]
    how.ledger.check()
    widths = {row["end_time"] - row["start_time"] for row in good}
    if len(widths) != 1 or min(widths) <= 0:
        rule = "needs buckets of one width, each from start_time to a later end_time"
        raise InputError([Complaint(str(path), "", rule, f"{len(widths)} widths")])
    step = widths.pop()
    start = min(row["start_time"] for row in good)
    places = [round((row["start_time"] - start) / step) for row in good]
    if max(places) >= _MOST_BUCKETS:
        rule = f"must hold at most {_MOST_BUCKETS:,} buckets from first to last"
        raise InputError([Complaint(str(path), "", rule, f"{max(places) + 1:,}")])
    kinds: dict[str, int] = {}
    kind = columns.codes([row["model"] for row in good], kinds)
    rates = np.zeros((len(kinds), max(places) + 1))
    np.add.at(rates, (kind, places), [row["num_model_requests"] / step for row in good])
    history = Counted(start, step, rates, tuple(kinds), dated=True, seen=(None,) * len(kinds))
    bad = len(rows) - len(good)
    return Reading(
        None,
        history,
        (FileRead(place=str(path), format=NAME, rows=len(rows), kept=len(good), bad=bad),),
        _means(good),
    )


def _means(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    total = {name: sum(row[name] for row in rows) for name in (*NEEDED[2:], "input_cached_tokens")}
    requests = max(total["num_model_requests"], 1)
    prompt = total["input_tokens"]
    cached = total["input_cached_tokens"] / max(prompt, 1)
    means = {"prompt": prompt / requests, "output": total["output_tokens"] / requests}
    return (CAVEAT.format(**means, cached=cached),)


def _numbers(path: Path, line: int, row: dict[str, Any], how: How) -> dict[str, Any] | None:
    found: dict[str, Any] = {"model": row.get("model") or "all"}
    for name in (*NEEDED, "input_cached_tokens"):
        value = row.get(name)
        try:
            found[name] = 0.0 if value in (None, "") and name not in NEEDED else _whole(value)
        except ValueError as error:
            how.ledger.add(Complaint(f"{path}:{line}", name, str(error), columns.shown(value)))
            return None
    return found


def _whole(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not (number >= 0 and number.is_integer()):
        raise ValueError("must be a whole number of at least 0")
    return number
