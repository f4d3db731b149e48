"""Which column of a table holds what."""

from dataclasses import dataclass, field
from typing import Literal

from capplan.errors import Complaint, InputError

Field = Literal["arrival", "prompt", "output", "class", "cached", "prefix", "failed"]
Unit = Literal["s", "ms", "us", "ns"]
FIELDS: tuple[Field, ...] = ("arrival", "prompt", "output", "class", "cached", "prefix", "failed")
UNITS: tuple[Unit, ...] = ("s", "ms", "us", "ns")
NEEDED: tuple[Field, ...] = ("arrival", "prompt", "output")


@dataclass(frozen=True)
class Layout:
    """The columns of a format; a dotted name goes into nested JSON."""

    name: str
    columns: dict[Field, str]
    unit: Unit | None = None
    """Of an arrival that is a number; None lets the values say, where they can only be one."""
    caveats: tuple[str, ...] = ()
    block_tokens: int = 0
    """Tokens of a block whose hashes the prefix column lists."""
    needed: frozenset[str] = field(default_factory=frozenset)
    """Columns that a table must have to be of this format."""

    def matches(self, names: set[str]) -> bool:
        """Whether a table with these columns is of this format."""
        return self.needed <= names


def mapped(text: str) -> Layout:
    """The layout that `--map arrival=ts:ms,prompt=in,output=out,class=route` describes.

    Raises:
        InputError: An unknown field or unit, a field twice, or one that is needed left out.
    """
    columns: dict[Field, str] = {}
    unit: Unit | None = None
    wrong: list[Complaint] = []
    for part in text.split(","):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        known = next((one for one in FIELDS if one == name), None)
        if known == "arrival":
            column, unit = _without_unit(column)
        if known is None or not equals or not column or known in columns:
            rule = f"each part is FIELD=COLUMN, FIELD once one of {', '.join(FIELDS)}"
            wrong.append(Complaint("--map", "", rule, repr(part)))
        else:
            columns[known] = column
    missing = [one for one in NEEDED if one not in columns]
    if missing and not wrong:
        rule = f"must say which columns hold {', '.join(missing)}"
        wrong.append(Complaint("--map", "", rule, repr(text)))
    if wrong:
        raise InputError(wrong)
    return Layout("mapped columns", columns, unit)


def _without_unit(column: str) -> tuple[str, Unit | None]:
    """A column's name and the unit behind its last colon, if that is one."""
    name, _, last = column.rpartition(":")
    unit = next((one for one in UNITS if one == last), None)
    return (name, unit) if unit and name else (column, None)
