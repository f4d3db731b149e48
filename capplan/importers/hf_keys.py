"""Reads typed values from a configuration and collects what is wrong with them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from capplan.errors import Complaint, InputError

LARGEST: Final = 100_000_000
"""No size of a model comes near it; a larger one is a slip, and would cost memory to believe."""

Where = Callable[[tuple[str, ...]], str]


class Keys:
    """The keys of one mapping; a wrong value leaves a complaint and a stand-in of 1.

    `check` must be called before anything read here is used.
    """

    def __init__(self, tree: Mapping[str, Any], prefix: tuple[str, ...], where: Where) -> None:
        self._tree = tree
        self._prefix = prefix
        self._where = where
        self._complaints: list[Complaint] = []

    def __contains__(self, key: str) -> bool:
        return key in self._tree

    def given(self, key: str) -> bool:
        """Whether the key stands there with a value: null says the same as nothing."""
        return self._tree.get(key) is not None

    def raw(self, key: str) -> Any:
        """The value as it stands; None where there is none."""
        return self._tree.get(key)

    def size(
        self, key: str, default: int | None = None, least: int = 1, most: int = LARGEST
    ) -> int:
        """A whole number within bounds; required where there is no default."""
        value = self._tree.get(key)
        if value is None and default is not None:
            return default
        if type(value) is not int or not least <= value <= most:
            self.complain(key, f"needs a whole number from {least} to {most}")
            return 1
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._tree.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.complain(key, "needs true or false")
            return default
        return value

    def whole_numbers(self, key: str) -> list[int]:
        """A list of whole numbers; empty where there is none."""
        value = self._tree.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or any(type(entry) is not int for entry in value):
            self.complain(key, "needs a list of whole numbers")
            return []
        return value

    def complain(self, key: str, rule: str, remedy: str | None = None) -> None:
        """Notes a broken rule at a key, with the value found there."""
        path = (*self._prefix, key)
        if any(complaint.key == ".".join(path) for complaint in self._complaints):
            return  # one complaint a key: later rules rest on the stand-in
        known = key in self._tree
        self._complaints.append(
            Complaint(
                place=self._where(path if known else self._prefix),
                key=".".join(path),
                rule=rule if known else f"{rule}; the key is missing",
                found=_shown(self._tree[key]) if known else None,
                remedy=remedy,
            )
        )

    def check(self) -> None:
        """Ends reading.

        Raises:
            InputError: If anything was wrong, with all of it.
        """
        if self._complaints:
            raise InputError(self._complaints)


def _shown(value: Any) -> str:
    """The value, short enough for one line; a huge number's digits are not worth the time."""
    if type(value) is int and abs(value) > LARGEST:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
