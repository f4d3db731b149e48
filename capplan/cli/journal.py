"""Keeps the cells of an unfinished sweep, so that a run that was stopped goes on where it was."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from capplan.errors import Complaint, InputError
from capplan.records.profile import MixedCell, PrefillCell, StepCell

Cell = StepCell | MixedCell | PrefillCell

GO_ON: Final = (
    "Mend that, such as by freeing space, and repeat the command: "
    "it goes on after the last cell measured."
)

KINDS: Final = {kind.__name__: kind for kind in (StepCell, MixedCell, PrefillCell)}


class Journal:
    """One line with the settings, then one line a cell.

    A line counts when its end is on the disk: what a killed run left behind it is cut off.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self._settings = json.loads(json.dumps(settings))

    def resume(self) -> list[Cell]:
        """Begins the journal, or takes up the one that is there.

        Returns:
            The cells that are done.

        Raises:
            InputError: If the file there holds other settings, is no journal or cannot be used.
        """
        lines = self._whole_lines()
        if not lines:
            self._begin()
            return []
        try:
            self._compare(json.loads(lines[0])["settings"])
            cells = [_cell(json.loads(line)) for line in lines[1:]]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._refused("", "is not the journal of a sweep") from error
        with self._told():
            os.truncate(self.path, sum(len(line) for line in lines))
        return cells

    def append(self, cell: Cell) -> None:
        """Writes a cell; when this returns it survives a power cut.

        Raises:
            InputError: If the disk takes no more.
        """
        with self._told(GO_ON):
            self._write({type(cell).__name__: cell.model_dump()})

    def close(self) -> None:
        """Removes the journal: the profile is written."""
        with self._told():
            self.path.unlink()

    def _begin(self) -> None:
        """Writes the settings; where that fails it leaves no file behind."""
        with self._told():
            self.path.write_bytes(b"")
            try:
                self._write({"settings": self._settings})
            except OSError:
                self.path.unlink()
                raise

    def _whole_lines(self) -> list[bytes]:
        with self._told():
            lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        return [line for line in lines if line.endswith(b"\n")]

    @contextmanager
    def _told(self, remedy: str | None = None) -> Iterator[None]:
        """Turns what the system refuses into a complaint."""
        try:
            yield
        except OSError as error:
            rule = f"cannot be used: {error.strerror or error}"
            raise InputError([Complaint(str(self.path), "", rule, None, remedy)]) from error

    def _compare(self, stored: dict[str, Any]) -> None:
        for key, value in self._settings.items():
            if stored.get(key) != value:
                raise self._refused(key, "this unfinished sweep ran with another value", stored)

    def _refused(self, key: str, rule: str, stored: dict[str, Any] | None = None) -> InputError:
        found = None if stored is None else json.dumps(stored.get(key))
        remedy = "Repeat the run as it was begun, name another --output, or delete the file."
        if found is not None and len(found) > 60:
            found = f"{found[:57]}..."
        return InputError([Complaint(str(self.path), key, rule, found, remedy)])

    def _write(self, entry: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _cell(entry: dict[str, Any]) -> Cell:
    ((name, row),) = entry.items()
    return KINDS[name].model_validate(row)
