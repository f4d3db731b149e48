"""A record as YAML the way people write it: block mappings, short lists and table rows in a line.

PyYAML's own emitter quotes by YAML 1.1 and would write `1e-2`, there text, without quotes.
"""

import datetime as dt
import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import ValidationError

from capplan.files.scalars import resolve
from capplan.records.base import Record

_LONG_TEXT = 40
"""A list of longer texts has a line for each."""
_DIGITS = 6
"""Significant digits of a float; measured times have fewer."""
_WHOLE_BELOW = 2**53
_INDENT = "  "
_PLAIN = re.compile(r"[A-Za-z_][\w./+-]*(?: [\w./+-]+)*", re.ASCII)
_ESCAPED = re.compile(
    "[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

R = TypeVar("R", bound=Record)


class _Line(list[Any]):
    """A list that is written in one line."""


def to_yaml(record: Record) -> str:
    """Text of a record's file: what was set, in the order of the fields, tables compact."""
    return "\n".join(_block(_tree(_shortened(record)), "")) + "\n"


def _shortened(record: R) -> R:
    """The record with short floats, unless its own rules then break (shares that sum to 1)."""
    tree = _short(record.model_dump(mode="json", exclude_unset=True))
    try:
        return type(record).model_validate_json(json.dumps(tree), strict=True)
    except ValidationError:
        return record


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, float) and not value.is_integer():
        return float(f"{value:.{_DIGITS}g}")
    return value


def _tree(value: Any) -> Any:
    if isinstance(value, Record):
        return _mapping(value)
    if isinstance(value, dict):
        return {key: _tree(item) for key, item in value.items()}
    if isinstance(value, tuple):
        items = [_tree(item) for item in value]
        return items if any(map(_is_long, items)) else _Line(items)
    return value


def _is_long(item: Any) -> bool:
    return isinstance(item, (dict, list)) or (isinstance(item, str) and len(item) > _LONG_TEXT)


def _mapping(record: Record) -> dict[str, Any]:
    """What was set; None only where the record insists on it."""
    tree: dict[str, Any] = {}
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        if name in record.model_fields_set and (value is not None or field.is_required()):
            if name == "rows":
                tree |= _table(value)
            else:
                tree[name] = _tree(value)
    return tree


def _table(rows: tuple[Record, ...]) -> dict[str, Any]:
    """Columns and rows; a column without any value is left out."""
    columns = [
        name
        for name in type(rows[0]).model_fields
        if any(name in row.model_fields_set and getattr(row, name) is not None for row in rows)
    ]
    return {
        "columns": _Line(columns),
        "rows": [_Line(_tree(getattr(row, name)) for name in columns) for row in rows],
    }


def _block(node: Any, indent: str) -> Iterator[str]:
    """Lines of a mapping or list."""
    if isinstance(node, dict):
        for key, value in node.items():
            if _in_line(value):
                yield f"{indent}{_text(key)}: {_flow(value)}"
            else:
                yield f"{indent}{_text(key)}:"
                yield from _block(value, indent + _INDENT)
        return
    for item in node:
        if _in_line(item):
            yield f"{indent}- {_flow(item)}"
        else:
            first, *rest = _block(item, indent + _INDENT)
            yield f"{indent}- {first.removeprefix(indent + _INDENT)}"
            yield from rest


def _in_line(value: Any) -> bool:
    return not isinstance(value, (dict, list)) or isinstance(value, _Line) or not value


def _flow(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return "{}" if isinstance(value, dict) else _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_BELOW:
        return str(int(value))
    return repr(value)


def _text(text: str) -> str:
    """Bare where it reads as the same text, else in double quotes."""
    if _PLAIN.fullmatch(text) and isinstance(resolve(text), str):
        return text
    # JSON's own escapes of what lies beyond U+FFFF are no YAML: only what must be is escaped.
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)
