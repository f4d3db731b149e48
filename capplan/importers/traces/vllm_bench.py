"""Result of `vllm bench serve --save-result --save-detailed`: one JSON object with lists.

`start_times` is the client's monotonic clock, so that only differences mean something. Prompt
lengths are counted before the chat template is put around them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capplan.errors import Complaint, InputError
from capplan.importers.traces.comma import Block
from capplan.importers.traces.how import How
from capplan.importers.traces.layout import Layout
from capplan.importers.traces.part import Part
from capplan.importers.traces.table import read_table

LAYOUT = Layout(
    "vllm bench serve result",
    {"arrival": "start_times", "prompt": "input_lens", "output": "output_lens"},
    unit="s",
    caveats=("a benchmark's own load, not what users asked: its rate is whatever was set",),
)


def matches(tree: Any) -> bool:
    """Whether a JSON document is such a result."""
    return isinstance(tree, dict) and "input_lens" in tree and "output_lens" in tree


def read(path: Path, tree: Any, how: How) -> Part:
    """Requests of a result; places count them from 1.

    Raises:
        InputError: The result was kept without --save-detailed, or its lists differ in length.
    """
    lists = {name: tree.get(name) for name in LAYOUT.columns.values()}
    lengths = {len(values) if isinstance(values, list) else 0 for values in lists.values()}
    if len(lengths) > 1 or 0 in lengths:
        rule = f"must hold lists {', '.join(lists)} of one length"
        remedy = "run vllm bench serve with --save-detailed, of a version that keeps start_times"
        raise InputError([Complaint(str(path), "", rule, remedy=remedy)])
    return read_table(path, LAYOUT, _blocks(lists), how)


def _blocks(lists: dict[str, Any]) -> Iterator[Block]:
    count = len(next(iter(lists.values())))
    yield list(range(1, count + 1)), lists
