"""guidellm's report, `benchmarks.json` of version 2 (0.8): the successful requests of each run.

Failed and incomplete requests count as unanswered.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capplan.importers.traces.comma import Block
from capplan.importers.traces.how import How
from capplan.importers.traces.layout import Layout
from capplan.importers.traces.part import Part
from capplan.importers.traces.table import read_table

LAYOUT = Layout(
    "guidellm report",
    {"arrival": "request_start", "prompt": "input tokens", "output": "output tokens"},
    unit="s",
    caveats=("a benchmark's own load, not what users asked: its rate is whatever was set",),
)


def matches(tree: Any) -> bool:
    """Whether a JSON document is such a report."""
    return isinstance(tree, dict) and isinstance(tree.get("benchmarks"), list)


def read(path: Path, tree: Any, how: How) -> Part:
    """Requests of all benchmarks of a report; places count them from 1.

    Raises:
        InputError: There are none, or they lack what is asked for.
    """
    part = read_table(path, LAYOUT, _blocks(tree), how)
    lost = sum(
        len(_requests(run).get(outcome) or [])
        for run in tree["benchmarks"]
        for outcome in ("errored", "incomplete")
    )
    part.rows += lost
    part.unanswered += lost
    return part


def _blocks(tree: Any) -> Iterator[Block]:
    done = [one for run in tree["benchmarks"] for one in (_requests(run).get("successful") or [])]
    if done:
        yield (
            list(range(1, len(done) + 1)),
            {
                "request_start": [_at(one, "info", "timings", "request_start") for one in done],
                "input tokens": [_at(one, "input_metrics", "total_tokens") for one in done],
                "output tokens": [_at(one, "output_metrics", "total_tokens") for one in done],
            },
        )


def _requests(run: Any) -> Any:
    return _at(run, "requests") or {}


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
