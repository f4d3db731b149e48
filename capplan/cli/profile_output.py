"""Where a profile goes: refused before measuring rather than after."""

import os
from pathlib import Path

from capplan.errors import Complaint, InputError

Obstacle = tuple[str, str | None]
"""The rule that is broken and what to do."""


def check(output: Path, *, force: bool, own_folder: bool) -> None:
    """Sees whether a profile can be written to a file.

    Args:
        output: The file.
        force: Whether a file that is there may be replaced.
        own_folder: Whether a missing folder may be made, because the user did not name it.

    Raises:
        InputError: If the profile cannot stand there, or another file does.
    """
    try:
        obstacle = _standing(output, force=force)
        if obstacle is None and not own_folder:
            obstacle = _folder(output)
    except OSError as error:
        obstacle = (f"cannot be written: {error.strerror or error}", None)
    if obstacle is not None:
        rule, remedy = obstacle
        raise InputError([Complaint(str(output), "", rule, None, remedy)])


def _standing(output: Path, *, force: bool) -> Obstacle | None:
    """What stands there and may not be replaced."""
    if str(output) == "-":
        return "is not a file", "For the profile on stdout add --format json."
    if output.is_dir():
        return "is a folder, needs a file", None
    if output.exists() and not output.is_file():
        return "is a pipe or device, needs a file", "For the profile on stdout add --format json."
    if output.exists() and not force:
        return "is there already", "Add --force to replace it, or name another --output."
    return None


def _folder(output: Path) -> Obstacle | None:
    """A folder that is missing or closed: the file's own, or the one that a link leads to."""
    for folder in (output.parent, Path(os.path.realpath(output)).parent):
        if not folder.is_dir():
            return f"there is no folder {folder}", "Make it, or name another --output."
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"cannot be written: no permission in {folder}", "Name another --output."
    return None
