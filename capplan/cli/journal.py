"""Keeps the cells of an unfinished sweep, so that a run that was stopped goes on where it was."""

import json
import os
from pathlib import Path
from typing import Any, Final

from capplan.errors import Complaint, InputError
from capplan.records.profile import MixedCell, PrefillCell, StepCell

Cell = StepCell | MixedCell | PrefillCell

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
            InputError: If the file there holds other settings or is no journal.
        """
        if not self.path.exists() or not self._whole_lines():
            self._begin()
            return []
        lines = self._whole_lines()
        try:
            self._compare(json.loads(lines[0])["settings"])
            cells = [_cell(json.loads(line)) for line in lines[1:]]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._refused("", "is not the journal of a sweep") from error
        os.truncate(self.path, sum(len(line) for line in lines))
        return cells

    def append(self, cell: Cell) -> None:
        """Writes a cell; when this returns it survives a power cut."""
        self._write({type(cell).__name__: cell.model_dump()})

    def close(self) -> None:
        """Removes the journal: the profile is written."""
        self.path.unlink()

    def _begin(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(b"")
        except OSError as error:
            rule = f"cannot be written: {error.strerror or error}"
            raise InputError([Complaint(str(self.path), "", rule)]) from error
        self._write({"settings": self._settings})

    def _whole_lines(self) -> list[bytes]:
        lines = self.path.read_bytes().splitlines(keepends=True)
        return [line for line in lines if line.endswith(b"\n")]

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
