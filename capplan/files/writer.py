"""Writes whole files only: what stood there stays until the new text is safe on the disk."""

import os
import stat
from pathlib import Path

from capplan.errors import Complaint, InputError
from capplan.files.emitter import to_yaml
from capplan.records.base import Record


def write_text(path: Path, text: str) -> None:
    """Writes a file by way of a temporary one beside it; pipes and devices are written directly.

    Raises:
        InputError: The folder is missing, a folder stands there, or the system refuses.
    """
    data = text.encode()
    # A link keeps pointing where it does: its target is replaced.
    target = Path(os.path.realpath(path))
    try:
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            target.write_bytes(data)
        else:
            _replace(target, data, mode)
    except OSError as error:
        rule = f"cannot be written: {error.strerror or error}"
        if not target.parent.is_dir():
            rule = f"cannot be written: there is no folder {path.parent}"
        raise InputError([Complaint(place=str(path), key="", rule=rule)]) from error


def write_record(path: Path, record: Record) -> None:
    """Writes a record as a file that `read` gives back, floats to six significant digits.

    Only what was set is written, in the order of the record's fields, tables compact. A profile's
    model so comes before its tables, where `catalogue.profiles_for` looks for it.

    Raises:
        InputError: As `write_text`.
    """
    write_text(path, to_yaml(record))


def _mode(target: Path) -> int | None:
    """Type and permissions of what stands there already."""
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        return None


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(stat.S_IMODE(mode))
        draft.replace(target)
    except BaseException:  # Ctrl-C too must leave no temporary file behind
        draft.unlink(missing_ok=True)
        raise
