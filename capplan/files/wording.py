"""pydantic's messages in plain words."""

import re
from collections.abc import Callable
from typing import Any

from pydantic_core import ErrorDetails

_NUMBER = "must be a number"
_WHOLE = "must be a whole number"
_LIST = "must be a list"
_MAPPING = "must be a mapping of keys to values"
_DATE = "must be a date such as 2026-03-31"
_TIME = "must be a time such as 2026-03-31T00:00:00Z"

_RULES: dict[str, str] = {
    "missing": "is required",
    "extra_forbidden": "unknown key",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "must be a finite number",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "must be a smaller number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "tuple_type": _LIST,
    "list_type": _LIST,
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": _DATE,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "union_tag_not_found": "is required",
}
_RULES_WITH_LIMIT: dict[str, Callable[[dict[str, Any]], str]] = {
    "greater_than_equal": lambda limit: f"must be at least {limit['ge']:g}",
    "greater_than": lambda limit: f"must be more than {limit['gt']:g}",
    "less_than_equal": lambda limit: f"must be at most {limit['le']:g}",
    "less_than": lambda limit: f"must be less than {limit['lt']:g}",
    "literal_error": lambda limit: _one_of(limit["expected"]),
    "union_tag_invalid": lambda limit: _one_of(" or ".join(limit["expected_tags"].rsplit(", ", 1))),
    "too_short": lambda limit: f"needs at least {_entries(limit['min_length'])}",
    "too_long": lambda limit: f"takes at most {_entries(limit['max_length'])}",
    "value_error": lambda limit: str(limit["error"]),
}
_CONSEQUENCES = frozenset({"too_short", "value_error", "assertion_error"})
_UNSHOWN = frozenset(
    {"missing", "extra_forbidden", "value_error", "assertion_error", "union_tag_not_found"}
)
_NUMERIC = frozenset({_NUMBER, _WHOLE})
_LOOKS_NUMERIC = re.compile(r"\s*[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?\s*", re.ASCII)


def rule_of(error: ErrorDetails) -> str:
    """The broken rule, without pydantic's vocabulary."""
    kind = error["type"]
    if kind in _RULES_WITH_LIMIT:
        return _RULES_WITH_LIMIT[kind](error.get("ctx", {}))
    rule = _RULES.get(kind) or error["msg"][:1].lower() + error["msg"][1:]
    if rule in _NUMERIC and isinstance(error["input"], bool):
        return f"{rule}, not true or false"
    return rule


def remedy_of(error: ErrorDetails) -> str | None:
    """What to do, where the value itself tells."""
    value = error["input"]
    if rule_of(error) in _NUMERIC and isinstance(value, str) and _LOOKS_NUMERIC.fullmatch(value):
        return "write it without quotes"
    if error["type"] == "string_type" and value is not None and not isinstance(value, (dict, list)):
        return "write it in quotes"
    return None


def value_of(error: ErrorDetails) -> Any:
    """The offending value; where a union's members could not be told apart, their tag."""
    return error["ctx"]["tag"] if error["type"] == "union_tag_invalid" else error["input"]


def shows_value(error: ErrorDetails) -> bool:
    """Whether the offending value helps to understand the rule."""
    return error["type"] not in _UNSHOWN


def is_consequence(error: ErrorDetails) -> bool:
    """Whether the rule may be broken only because something inside is wrong."""
    return error["type"] in _CONSEQUENCES


def _entries(number: int) -> str:
    return "one entry" if number == 1 else f"{number} entries"


def _one_of(expected: str) -> str:
    """`'a', 'b' or 'c'` without its quotes."""
    return f"must be {expected.replace(chr(39), '')}"
