"""From pydantic's errors to complaints at the user's own keys."""

import difflib
import re
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from capplan.files.durations import Durations
from capplan.files.findings import Findings, KeyPath, shown
from capplan.files.shape import duration_keys, kinds_at, known_keys
from capplan.files.tables import Tables
from capplan.files.wording import is_consequence, remedy_of, rule_of, shows_value, value_of
from capplan.records.base import Record

_ITL = re.compile(r"(^|_)itl(_|$)", re.IGNORECASE)
_ITL_REMEDY = (
    "itl is ambiguous under speculation, where one step emits several tokens: "
    "use tpot_p99 (per token) or chunk_gap_p99 (between streamed chunks)"
)
_MOST_LISTED = 15


@dataclass(frozen=True)
class Tree:
    """What was handed to pydantic, and how it stands in the file."""

    value: Any
    kind: type[Record]
    tables: Tables
    durations: Durations


def complain(errors: list[ErrorDetails], tree: Tree, findings: Findings) -> None:
    """Adds a complaint for each error that is not a consequence of another."""
    # Wrong keys first (their values' errors are no news), consequences last.
    for error in sorted(errors, key=_rank):
        in_file = file_path(error, tree.value)
        path, rule, remedy = _located(error, in_file, tree)
        if findings.settled(in_file) or findings.settled(path):
            continue
        if is_consequence(error) and _follows(path, tree, findings):
            continue
        key_path, value = path, value_of(error)
        if written := tree.durations.get(path):
            key_path, value = written.key_path, written.value
        found = shown(value) if shows_value(error) and not _is_key(error) else None
        findings.add(key_path, rule, found=found, remedy=remedy, settles=path)


def _rank(error: ErrorDetails) -> int:
    if error["type"] == "extra_forbidden" or _is_key(error):
        return 0
    return 2 if is_consequence(error) else 1


def _follows(path: KeyPath, tree: Tree, findings: Findings) -> bool:
    """Whether something inside a key has been complained about; of rows, their columns count."""
    if path[-1:] == ("rows",) and path[:-1] in tree.tables:
        columns = (*path[:-1], "columns")
        return findings.settled_within(columns) or findings.settled_within(path)
    return findings.settled_within(path)


def _is_key(error: ErrorDetails) -> bool:
    """Whether a mapping's key, not its value, is wrong."""
    return error["loc"][-1:] == ("[key]",)


def _located(error: ErrorDetails, path: KeyPath, tree: Tree) -> tuple[KeyPath, str, str | None]:
    """Path to complain about (a compact table's column for what all its rows share), with words."""
    rule, remedy = rule_of(error), remedy_of(error)
    if _is_key(error) or error["type"] == "extra_forbidden":
        rule, remedy = "unknown key", _known(path, tree)
    if len(path) > 2 and path[-3] == "rows" and (columns := tree.tables.get(path[:-3])):
        # Said once of the column, not of every row.
        name = str(path[-1])
        if rule == "unknown key":
            return (*path[:-3], "columns", columns.index(name)), f"unknown column {name}", remedy
        if error["type"] == "missing" and not {name, name.removesuffix("_s")} & set(columns):
            return (*path[:-3], "columns", name), rule, remedy
    return path, rule, remedy


def file_path(error: ErrorDetails, tree: Any) -> KeyPath:
    """The keys of an error's location; what only pydantic knows (tags, `[key]`) is left out."""
    path: list[str | int] = []
    node, location = tree, error["loc"]
    for index, part in enumerate(location):
        if _holds(node, part):
            path.append(part)
            node = node[part]
        elif error["type"] == "missing" and index == len(location) - 1:
            path.append(part)
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        path.append(error["ctx"]["discriminator"].strip("'"))
    return tuple(path)


def _holds(node: Any, part: str | int) -> bool:
    if isinstance(node, dict):
        return part in node
    return isinstance(node, list) and isinstance(part, int) and part < len(node)


def _known(path: KeyPath, tree: Tree) -> str | None:
    """Which key was meant, or which there are."""
    wrong = str(path[-1])
    if _ITL.search(wrong):
        return _ITL_REMEDY
    node = tree.value
    for part in path[:-1]:
        node = node[part]
    kinds = kinds_at(tree.kind, path[:-1])
    in_seconds = duration_keys(kinds)
    # Offered as they would be written: step: 1h rather than step_s.
    known = [
        key.removesuffix("_s") if key in in_seconds and not wrong.endswith("_s") else key
        for key in known_keys(kinds, node)
        if key not in node
    ]
    if near := difflib.get_close_matches(wrong, known, n=1):
        return f"did you mean {near[0]}?"
    if not known:
        return "remove it"
    more = ", …" if len(known) > _MOST_LISTED else ""
    return f"known keys: {', '.join(known[:_MOST_LISTED])}{more}"
