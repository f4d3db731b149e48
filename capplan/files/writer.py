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
    try:
        mode = _mode(path)
        if mode is not None and not stat.S_ISREG(mode):
            # Opened by the name given: behind /dev/stdout a pipe has no path of its own.
            path.write_bytes(data)
        else:
            # A link keeps pointing where it does: its target is replaced.
            _replace(Path(os.path.realpath(path)), data, mode)
    except OSError as error:
        rule = f"cannot be written: {_reason(path, error)}"
        raise InputError([Complaint(place=str(path), key="", rule=rule)]) from error


def write_record(path: Path, record: Record) -> None:
    """Writes a record as a file that `read` gives back, floats to six significant digits.

    Only what was set is written, in the order of the record's fields, tables compact. A profile's
    model so comes before its tables, where `catalogue.profiles_for` looks for it.

    Raises:
        InputError: As `write_text`.
    """
    write_text(path, to_yaml(record))


def _mode(path: Path) -> int | None:
    """Type and permissions of what stands there already."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _reason(path: Path, error: OSError) -> str:
    if isinstance(error, BrokenPipeError):
        return "the other end of the pipe was closed"
    if isinstance(error, (FileNotFoundError, NotADirectoryError)) and not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    return error.strerror or str(error)


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
