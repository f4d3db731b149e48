"""Cells of a block of rows to numbers: all at once, and one by one where a cell is bad."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from capplan.records.trace import Floats, Ints

LARGEST_TOKENS = 1e9
_SHOWN = 40

Complain = Callable[[int, str, Any], None]
"""Told of a bad cell: its place in the block, the rule and the value."""


def tokens(values: Sequence[Any]) -> Floats:
    """Token counts of many cells [tokens].

    Raises:
        ValueError: One of them at least needs a look of its own.
    """
    # map(int) costs a quarter of numpy's own parsing of text.
    try:
        numbers = np.fromiter(map(int, values), np.float64, len(values))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError from error
    if (
        not {bool, float}.isdisjoint(map(type, values))
        or numbers.min() < 0
        or numbers.max() > LARGEST_TOKENS
    ):
        raise ValueError
    return numbers


def token(value: Any) -> float:
    """One token count [tokens].

    Raises:
        ValueError: The rule that it breaks.
    """
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (0 <= number <= LARGEST_TOKENS and number.is_integer()):
        raise ValueError("must be a whole number of tokens, at least 0")
    return number


def parsed(
    values: Sequence[Any],
    many: Callable[[Sequence[Any]], Floats],
    one: Callable[[Any], float],
    complain: Complain,
) -> Floats:
    """A column of numbers, nan where `complain` was told why.

    Args:
        values: The cells.
        many: Reads them all, or raises ValueError.
        one: Reads one, or raises ValueError with the rule.
        complain: Is told of each bad cell.
    """
    try:
        return many(values)
    except ValueError:
        pass
    found = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        try:
            found[place] = one(value)
        except ValueError as error:
            complain(place, str(error), value)
    return found


def codes(values: Sequence[Any], known: dict[str, int]) -> Ints:
    """A number for each text; `known` grows."""
    labels = map(_label, values)
    return np.fromiter(
        (known.setdefault(label, len(known)) for label in labels), np.int64, len(values)
    )


def _label(value: Any) -> str:
    text = "none" if value is None or value == "" else str(value).strip()
    return text.encode("utf-8", "replace").decode()[:_SHOWN]


def shown(value: Any) -> str:
    """A cell for a complaint: quoted, and cut where it is long."""
    text = "nothing" if value is None or value == "" else ascii(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
