"""Which format a file is of, by what it holds; its name does not matter."""

import json
from pathlib import Path
from typing import Any

from capplan.errors import Complaint, InputError
from capplan.importers.traces import (
    aiperf,
    azure,
    burstgpt,
    comma,
    guidellm,
    json_lines,
    mooncake,
    openai_log,
    openai_usage,
    parquet,
    servegen,
    vllm_bench,
)
from capplan.importers.traces.how import How
from capplan.importers.traces.layout import Layout
from capplan.importers.traces.part import Part
from capplan.importers.traces.table import read_table
from capplan.importers.traces.text import opened, whole
from capplan.records.trace import Reading

LAYOUTS = (
    azure.LAYOUT,
    burstgpt.LAYOUT,
    mooncake.LAYOUT,
    aiperf.LAYOUT,
    openai_log.WITH_CACHE,
    openai_log.LAYOUT,
)
READERS = ((guidellm.matches, guidellm.read), (vllm_bench.matches, vllm_bench.read))
_START = 1 << 16


def read_file(path: Path, how: How) -> Part | Reading:
    """Requests of a file, or rates where it holds no more.

    Raises:
        InputError: The format is not known, or its rows are bad.
    """
    if path.is_dir():
        if not servegen.is_folder(path):
            rule = "a folder must hold ServeGen's chunk-N-trace.csv"
            raise InputError([Complaint(str(path), "", rule)])
        return servegen.read_folder(path)
    start = _start(path)
    if start.startswith("PAR1"):
        columns = parquet.names(path)
        layout = _layout(path, set(columns), columns, how)
        return read_table(path, layout, parquet.blocks(path, _wanted(layout)), how)
    if start.lstrip().startswith(("{", "[")):
        return _json(path, start, how)
    return _comma(path, how)


def _start(path: Path) -> str:
    """The beginning of the text, without what cannot be unpacked."""
    with opened(path) as text:
        try:
            return text.read(_START)
        except (EOFError, OSError):
            return ""


def _comma(path: Path, how: How) -> Part | Reading:
    names = comma.header(path)
    if how.mapping is None and set(servegen.HOURLY_COLUMNS) <= set(names):
        return servegen.read_hourly(path, how)
    if how.mapping is None and set(openai_usage.NEEDED) <= set(names):
        wanted = [*openai_usage.NEEDED, *({"model", "input_cached_tokens"} & set(names))]
        return openai_usage.read_rows(path, comma.blocks(path, wanted, how.ledger), how)
    layout = _layout(path, set(names), names, how)
    return read_table(path, layout, comma.blocks(path, _wanted(layout), how.ledger), how)


def _json(path: Path, start: str, how: How) -> Part | Reading:
    """One object a line, or one document."""
    first = _object(start.lstrip().partition("\n")[0])
    if first is not None and not _is_document(first):
        # An object may lack what the next one has: a mapping's columns are not looked for in it.
        names = json_lines.names(first)
        layout = how.mapping or _layout(path, names, sorted(first), how)
        return read_table(path, layout, json_lines.blocks(path, _wanted(layout), how.ledger), how)
    tree = _document(path)
    if openai_usage.matches(tree):
        return openai_usage.read_pages(path, tree, how)
    for matches, read in READERS:
        if matches(tree):
            return read(path, tree, how)
    raise InputError([_unknown(path, sorted(tree) if isinstance(tree, dict) else [])])


def _is_document(tree: Any) -> bool:
    return openai_usage.matches(tree) or any(matches(tree) for matches, _ in READERS)


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _document(path: Path) -> Any:
    try:
        return json.loads(whole(path))
    except ValueError as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        raise InputError([Complaint(f"{path}:{line}:{column}", "", "is not JSON")]) from error


def _layout(path: Path, names: set[str], shown: list[str], how: How) -> Layout:
    """The user's layout or a known one that the columns fit.

    Raises:
        InputError: A column of the user's is missing, or no known format fits.
    """
    if how.mapping is None:
        for layout in LAYOUTS:
            if layout.matches(names):
                return layout
        raise InputError([_unknown(path, shown)])
    missing = [column for column in how.mapping.columns.values() if column not in names]
    if missing:
        remedy = f"its columns: {', '.join(shown[:15])}"
        raise InputError([Complaint(str(path), c, "no such column", None, remedy) for c in missing])
    return how.mapping


def _wanted(layout: Layout) -> list[str]:
    return list(dict.fromkeys(layout.columns.values()))


def _unknown(path: Path, columns: list[str]) -> Complaint:
    listed = ", ".join(columns[:15]) + (", …" if len(columns) > 15 else "")
    return Complaint(
        place=str(path),
        key="",
        rule="is of no format that is known by its columns",
        found=listed or None,
        remedy="say which is which: --map arrival=COLUMN,prompt=COLUMN,output=COLUMN"
        "[,class=COLUMN][,cached=COLUMN]",
    )
