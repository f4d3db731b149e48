"""Fields of a published row, each checked, with complaints that name its line."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from capplan.errors import Complaint

Place = Callable[[tuple[str | int, ...]], str]
RANGE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*[-–]\s*(\d+(?:\.\d+)?)")


@dataclass
class Fields:
    """One mapping of a file; what is wrong with it is gathered, not raised."""

    tree: dict[str, Any]
    path: tuple[str | int, ...]
    place: Place
    complaints: list[Complaint] = field(default_factory=list)

    @property
    def here(self) -> str:
        """Where it stands."""
        return self.place(self.path)

    def text(self, key: str) -> str | None:
        """Words, or None."""
        value = self.tree.get(key)
        if value is None or isinstance(value, str):
            return value
        self._wrong(key, "must be text", value)
        return None

    def number(self, key: str, *, least: float = 0.0) -> float | None:
        """A number above `least`; of a range such as 2.1-2.3 the middle; None for anything else.

        Sources write `<=2`, or several numbers under names, where they have no single one: that is
        not known, not wrong.
        """
        value = self.tree.get(key)
        if value is None or isinstance(value, dict | list):
            return None
        if isinstance(value, str):
            found = RANGE.fullmatch(value.strip())
            if found is None:
                return None
            value = (float(found[1]) + float(found[2])) / 2
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong(key, "must be a number, a range or words", value)
            return None
        if not least < value < float("inf"):
            self._wrong(key, f"must be a number above {least:g}", value)
            return None
        return float(value)

    def count(self, key: str) -> int | None:
        """A whole number, 0 among them; None for words."""
        value = self.number(key, least=-1e-9)
        if value is None or isinstance(self.tree[key], str):
            return None
        if value == int(value):
            return int(value)
        self._wrong(key, "must be whole", value)
        return None

    def part(self, key: str) -> "Fields":
        """A mapping inside; an empty one where something else, or nothing, stands there."""
        value = self.tree.get(key)
        inside = value if isinstance(value, dict) else {}
        return Fields(inside, (*self.path, key), self.place, self.complaints)

    def rows(self, key: str) -> list["Fields"]:
        """The mappings of a list."""
        value = self.tree.get(key)
        if not isinstance(value, list):
            self._wrong(key, "must be a list of mappings", value)
            return []
        found = []
        for index, row in enumerate(value):
            path = (*self.path, key, index)
            if isinstance(row, dict):
                found.append(Fields(row, path, self.place, self.complaints))
            else:
                rule = "must be a mapping"
                self.complaints.append(Complaint(self.place(path), key, rule, found=repr(row)))
        return found

    def _wrong(self, key: str, rule: str, value: object) -> None:
        self.complaints.append(
            Complaint(self.place((*self.path, key)), key, rule, found=repr(value))
        )


def rows(tree: object, key: str, place: Place) -> tuple[list[Fields], list[Complaint]]:
    """The mappings of a file's list, and complaints to which theirs will be added."""
    complaints: list[Complaint] = []
    whole = tree if isinstance(tree, dict) else {}
    return Fields(whole, (), place, complaints).rows(key), complaints
