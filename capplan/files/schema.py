"""JSON schemas of the file formats, for editors that complete and check YAML.

They describe the files, not the bare records: durations may carry a unit, tables may be compact.
"""

import json
from typing import Any

from capplan.files.durations import PATTERN
from capplan.records.base import Record

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DURATION = {"type": "string", "pattern": f"^{PATTERN}$", "examples": ["45ms", "2s", "1h"]}


def json_schema(kind: type[Record]) -> str:
    """Schema of the files that hold a record, as indented JSON."""
    schema = kind.model_json_schema()
    _widen(schema)
    title = f"capplan {kind.__name__.lower()}"
    return json.dumps({"$schema": _DIALECT, **schema, "title": title}, indent=2)


def _widen(node: Any) -> None:
    """Admits, in place and all the way down, what the reader takes beside a record's keys."""
    if isinstance(node, list):
        for item in node:
            _widen(item)
    elif isinstance(node, dict):
        for item in list(node.values()):
            _widen(item)
        if isinstance(node.get("properties"), dict):
            _durations(node)
            _compact(node["properties"])
        if "enum" in node.get("propertyNames", {}):
            _objectives(node)


def _in_seconds(name: str) -> bool:
    """Whether a key ends in the suffix of seconds (a test holds suffixes and units together)."""
    return name.endswith("_s") and not name.endswith("_per_s")


def _durations(node: dict[str, Any]) -> None:
    for name in filter(_in_seconds, list(node["properties"])):
        short = name.removesuffix("_s")
        node["properties"][short] = {**_DURATION, "description": f"{name}, with a unit"}
        if name in node.get("required", []):
            node["required"].remove(name)
            either = [{"required": [name]}, {"required": [short]}]
            node.setdefault("allOf", []).append({"oneOf": either})


def _compact(properties: dict[str, Any]) -> None:
    if "rows" in properties:
        properties["columns"] = {"type": "array", "items": {"type": "string"}}
        rows = properties["rows"]
        # Cells of a compact row are checked by the reader, which knows the columns.
        rows["items"] = {"anyOf": [rows["items"], {"type": "array"}]}


def _objectives(node: dict[str, Any]) -> None:
    keys = node["propertyNames"]["enum"]
    if all(map(_in_seconds, keys)):
        node["propertyNames"]["enum"] = [*keys, *(key.removesuffix("_s") for key in keys)]
        node["additionalProperties"] = {"anyOf": [node["additionalProperties"], _DURATION]}
