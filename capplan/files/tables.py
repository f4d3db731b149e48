"""Compact tables: `{columns: [a, b], rows: [[1, 2], …]}` stands for `{rows: [{a: 1, b: 2}, …]}`."""

from typing import Any

from capplan.files.findings import Findings, KeyPath, shown

Tables = dict[KeyPath, list[str]]
"""Path of each compact table, with its columns."""


def expand_tables(tree: Any, findings: Findings) -> Tables:
    """Writes every compact table of a tree out, in place; an empty (null) cell leaves its key out.

    Positions follow: the key of a row stands where its cell stands.

    Returns:
        What was a compact table, so that complaints can speak of columns.
    """
    tables: Tables = {}
    _walk(tree, (), findings, tables)
    return tables


def _walk(node: Any, path: KeyPath, findings: Findings, tables: Tables) -> None:
    if isinstance(node, list):
        # A table's rows hold thousands of scalars: look at nothing that cannot hold a table.
        for index, item in enumerate(node):
            if isinstance(item, (dict, list)):
                _walk(item, (*path, index), findings, tables)
        return
    if not isinstance(node, dict):
        return
    if "columns" in node and "rows" in node:
        columns = node.pop("columns")
        if _named(columns, path, findings):
            tables[path] = columns
            _expand(node, path, columns, findings)
    for key, value in node.items():
        if path not in tables or key != "rows":
            _walk(value, (*path, key), findings, tables)


def _named(columns: Any, path: KeyPath, findings: Findings) -> bool:
    """Whether columns are a list of different names; complains otherwise."""
    at = (*path, "columns")
    if not isinstance(columns, list) or not columns:
        rule = "must be a list of column names"
        findings.add(at, rule, found=shown(columns), settles=path)
        return False
    for index, name in enumerate(columns):
        if not isinstance(name, str):
            rule = "a column's name must be text"
            findings.add((*at, index), rule, found=shown(name), settles=path)
        elif name in columns[:index]:
            findings.add((*at, index), "column stands twice", found=name, settles=path)
    return not findings.settled(path)


def _expand(node: dict[str, Any], path: KeyPath, columns: list[str], findings: Findings) -> None:
    at = (*path, "rows")
    if not isinstance(node["rows"], list):
        findings.add(at, "must be a list of rows", found=shown(node["rows"]))
        return
    places = findings.places
    rows: list[dict[str, Any]] = []
    for index, row in enumerate(node["rows"]):
        here = (*at, index)
        if not isinstance(row, list):
            rule = f"must be a list of {len(columns)} cells, one a column"
            findings.add(here, rule, found=shown(row))
            row = []  # noqa: PLW2901  the complaint stands; the place in the list is kept
        elif len(row) != len(columns):
            rule = f"must have {len(columns)} cells, one a column"
            findings.add(here, rule, found=f"{len(row)}: {shown(row)}")
        for position, name in enumerate(columns[: len(row)]):
            places[*here, name] = places[*here, position]
        cells = zip(columns, row, strict=False)
        rows.append({name: cell for name, cell in cells if cell is not None})
    node["rows"] = rows
