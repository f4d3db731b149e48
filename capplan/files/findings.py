"""Collects what is wrong with one file, so that all of it is said at once and in file order."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from capplan.errors import Complaint, InputError

KeyPath = tuple[str | int, ...]
Position = tuple[int, int]
"""Line and column, both from 1."""
Places = dict[KeyPath, Position]

_SHOWN = 60
"""Characters of an offending value that are repeated to the user."""


def position_of(places: Places, key_path: KeyPath) -> Position | None:
    """Position of a key, or of the nearest thing around it that has one."""
    for end in range(len(key_path), -1, -1):
        if (position := places.get(key_path[:end])) is not None:
            return position
    return None


def place_of(path: Path, position: Position | None) -> str:
    """`file:line:column`, or the file alone."""
    return str(path) if position is None else f"{path}:{position[0]}:{position[1]}"


def dotted(key_path: KeyPath) -> str:
    """A key path as users write it.

    >>> dotted(("classes", 1, "objectives", "ttft_p99"))
    'classes.1.objectives.ttft_p99'
    """
    return ".".join(str(part) for part in key_path)


def shown(value: Any) -> str:
    """A value as compact JSON, cut where it gets long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class Findings:
    """Complaints about one file.

    A key that has been complained about is settled: what else breaks because of it is no news.
    """

    def __init__(self, path: Path, places: Places) -> None:
        self.path = path
        self.places = places
        self._found: list[tuple[Position, Complaint]] = []
        self._elsewhere: list[Complaint] = []
        self._settled: set[KeyPath] = set()
        self._above: set[KeyPath] = set()

    def add(
        self,
        key_path: KeyPath,
        rule: str,
        *,
        found: str | None = None,
        remedy: str | None = None,
        at: Position | None = None,
        settles: KeyPath | None = None,
    ) -> None:
        """Adds a complaint.

        Args:
            key_path: The key it is about.
            rule: The broken rule.
            found: The offending value as text.
            remedy: What to do.
            at: Position, where it is not the key's own.
            settles: The part of the file that needs no further complaint; the key without it.
        """
        position = at or position_of(self.places, key_path)
        complaint = Complaint(
            place=place_of(self.path, position),
            key=dotted(key_path),
            rule=rule,
            found=found,
            remedy=remedy,
        )
        self._found.append((position or (0, 0), complaint))
        settled = key_path if settles is None else settles
        self._settled.add(settled)
        self._above.update(settled[:end] for end in range(len(settled)))

    def add_elsewhere(self, complaints: Iterable[Complaint]) -> None:
        """Adds complaints about other files that this one names."""
        self._elsewhere.extend(complaints)

    def settled(self, key_path: KeyPath) -> bool:
        """Whether the key, or something that holds it, has been complained about."""
        return any(key_path[:end] in self._settled for end in range(len(key_path) + 1))

    def settled_within(self, key_path: KeyPath) -> bool:
        """Whether something inside the key has been complained about."""
        return key_path in self._above

    def check(self) -> None:
        """Ends the reading of a file that is not right.

        Raises:
            InputError: With every complaint, in file order.
        """
        if self._found or self._elsewhere:
            ordered = sorted(self._found, key=lambda item: item[0])
            raise InputError([*(complaint for _, complaint in ordered), *self._elsewhere])
