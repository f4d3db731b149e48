"""What a plain word in a file means: the core schema of YAML 1.2.

PyYAML follows YAML 1.1, where `1e-2` is text, `no` is false, `010` is eight and `12:30` is 750.
"""

import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_MAYBE_NUMBER = frozenset("+-.0123456789")
_LONGEST_INT = 300
"""Digits beyond which a whole number is read as a float (then infinite, and refused)."""
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_OCTAL = re.compile(r"0o[0-7]{1,20}")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,16}")


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar; dates and times stay text.

    Source:
        YAML 1.2.2, section 10.3.2, tag resolution of the core schema.

    >>> [resolve(word) for word in ("1e-2", "no", "010", "0x1F", "true", "2025-03-01")]
    [0.01, 'no', 10, 31, True, '2025-03-01']
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAYBE_NUMBER:
        return text
    if _INT.fullmatch(text):
        return int(text) if len(text) <= _LONGEST_INT else float(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _OCTAL.fullmatch(text):
        return int(text, 0)
    return int(text, 16) if _HEX.fullmatch(text) else text
