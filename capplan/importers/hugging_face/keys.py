"""Reads typed values from a configuration and collects what is wrong with them.

Every key that is read is remembered as understood; `unknown` looks at what is left.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capplan.errors import Complaint, InputError

LARGEST: Final = 100_000_000
"""No size of a model comes near it; a larger one is a slip, and would cost memory to believe."""
LARGEST_TABLE: Final = 1_000_000_000
"""Rows of a lookup table are the one exception."""

ABRIDGED: Final = "Take the checkpoint's own config.json: this one may have been abridged."

Where = Callable[[tuple[str, ...]], str]


@dataclass
class Report:
    """What reading one file has found so far."""

    complaints: list[Complaint] = field(default_factory=list)
    mappings: list["Keys"] = field(default_factory=list)
    """All that were opened."""


class Keys:
    """The keys of one mapping; a wrong value leaves a complaint and a stand-in.

    `check` must be called before anything read here is used.
    """

    def __init__(
        self,
        tree: Mapping[str, Any],
        prefix: tuple[str, ...],
        where: Where,
        report: Report | None = None,
    ) -> None:
        self._tree = tree
        self._prefix = prefix
        self._where = where
        self.report = Report() if report is None else report
        self.report.mappings.append(self)
        self.read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._tree

    def left(self) -> dict[str, Any]:
        """Keys that nothing has read, with their values."""
        return {key: value for key, value in self._tree.items() if key not in self.read}

    def given(self, key: str) -> bool:
        """Whether the key stands there with a value: null says the same as nothing."""
        return self.raw(key) is not None

    def raw(self, key: str) -> Any:
        """The value as it stands; None where there is none."""
        self.read.add(key)
        return self._tree.get(key)

    def first(self, *names: str) -> str:
        """Which of several names of one thing the file uses; the first where none is given.

        Two that disagree are complained of.
        """
        given = [name for name in names if self.given(name)]
        for other in given[1:]:
            if self.raw(other) != self.raw(given[0]):
                self.complain(other, f"says otherwise than {given[0]} ({self.raw(given[0])!r})")
        return given[0] if given else names[0]

    def size(
        self, key: str, default: int | None = None, least: int = 1, most: int = LARGEST
    ) -> int:
        """A whole number within bounds; required where there is no default."""
        value = self.raw(key)
        if value is None and default is not None:
            return default
        if type(value) is not int or not least <= value <= most:
            self.complain(key, f"needs a whole number from {least} to {most}")
            return max(1, least)
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        """True or false; required where there is no default."""
        value = self.raw(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, bool):
            self.complain(key, "needs true or false")
            return bool(default)
        return value

    def word(self, key: str, known: Sequence[str], default: str | None = None) -> str:
        """One of the words that are known; required where there is no default."""
        value = self.raw(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or value not in known:
            self.complain(key, f"needs one of {', '.join(known)}")
            return known[0]
        return value

    def fixed(self, key: str, known: int) -> None:
        """A number that may be left out, and says nothing new where it is given."""
        if self.given(key) and self.raw(key) != known:
            self.complain(key, f"must be {known}, as the rest of the file has it")

    def whole_numbers(self, key: str) -> list[int]:
        """A list of whole numbers; empty where there is none."""
        value = self.raw(key)
        if value is None:
            return []
        if not isinstance(value, list) or any(
            type(entry) is not int or abs(entry) > LARGEST_TABLE for entry in value
        ):
            self.complain(key, "needs a list of whole numbers")
            return []
        return value

    def by_layer(self, key: str, layers: int, known: Sequence[Any]) -> list[Any]:
        """One of the known values for each layer."""
        value = self.raw(key)
        if not isinstance(value, list) or len(value) != layers:
            self.complain(key, f"needs a list with a value for each of the {layers} layers")
            return [known[0]] * layers
        for entry in value:
            if not any(entry == one and type(entry) is type(one) for one in known):
                shown = ", ".join(str(one) for one in known)
                self.complain(key, f"{shown_value(entry)} is not known to capplan; known: {shown}")
                return [known[0]] * layers
        return value

    def inside(self, key: str) -> "Keys":
        """The mapping under a key; an empty one, with a complaint, where there is none."""
        value = self.raw(key)
        if not isinstance(value, Mapping):
            self.complain(key, "needs a mapping")
            value = {}
        return Keys(value, (*self._prefix, key), self._where, self.report)

    def complain(self, key: str, rule: str, remedy: str | None = None) -> None:
        """Notes a broken rule at a key, with the value found there."""
        path = (*self._prefix, key)
        if self.complained_of(key):
            return  # one complaint a key: later rules rest on the stand-in
        known = key in self._tree
        self.report.complaints.append(
            Complaint(
                place=self._where(path if known else self._prefix),
                key=".".join(path),
                rule=rule if known else f"{rule}; the key is missing",
                found=shown_value(self._tree[key]) if known else None,
                remedy=remedy if known or remedy else ABRIDGED,
            )
        )

    def complained_of(self, key: str) -> bool:
        """Whether anything was wrong with a key."""
        path = ".".join((*self._prefix, key))
        return any(complaint.key == path for complaint in self.report.complaints)

    def check(self) -> None:
        """Ends reading.

        Raises:
            InputError: If anything was wrong, with all of it.
        """
        if self.report.complaints:
            raise InputError(self.report.complaints)


def shown_value(value: Any) -> str:
    """The value, short enough for one line; a huge number's digits are not worth the time."""
    if type(value) is int and abs(value) > LARGEST_TABLE:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, list | Mapping):
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
