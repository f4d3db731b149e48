"""Takes the text of a file, or says in plain words why not."""

import re
import stat
from pathlib import Path

from capplan.errors import Complaint, InputError

_MIB = 1 << 20
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What YAML 1.2.2, 5.1, keeps out of a file, and U+0085, a line's end to some programs only."""


def read_text(path: Path, limit_bytes: int) -> str:
    """Text of a UTF-8 file; the size is checked before anything is read.

    Args:
        path: A file, or a pipe.
        limit_bytes: The most that is read. [bytes]

    Raises:
        InputError: No such file, a folder, no permission, too large, not UTF-8, or control
            characters, which could write to a terminal what nobody sees in the file.
    """
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise _refused(path, "is a folder, not a file")
        if found.st_size > limit_bytes:
            raise _too_large(path, limit_bytes, f"{found.st_size / _MIB:.1f} MiB")
        with path.open("rb") as file:
            # A pipe or device has no size to check beforehand.
            data = file.read(limit_bytes + 1)
    except FileNotFoundError as error:
        raise _refused(path, "no such file") from error
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a NUL inside the path
        raise _refused(Path(str(path).replace("\0", "\\0")), "is not a file name") from error
    if len(data) > limit_bytes:
        raise _too_large(path, limit_bytes, "more")
    text = _decoded(path, data)
    _check_characters(path, text)
    return text


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # `error.start` counts from behind a byte order mark, `error.object` holds what it counts.
        before = bytes(error.object[: error.start])
        line_start = before.rfind(b"\n") + 1
        line, column = before.count(b"\n") + 1, len(before[line_start:].decode("utf-8")) + 1
        raise InputError(
            [
                Complaint(
                    place=f"{path}:{line}:{column}",
                    key="",
                    rule="is not UTF-8 text",
                    found=f"byte 0x{error.object[error.start]:02x}",
                    remedy="save the file as UTF-8",
                )
            ]
        ) from error


def _check_characters(path: Path, text: str) -> None:
    """Refuses what no text file holds, with its position (libyaml names only an offset)."""
    if (match := _UNPRINTABLE.search(text)) is None:
        return
    before = text[: match.start()]
    place = f"{path}:{before.count(chr(10)) + 1}:{match.start() - before.rfind(chr(10))}"
    rule, code = "control characters are not allowed", f"U+{ord(match.group()):04X}"
    raise InputError([Complaint(place=place, key="", rule=rule, found=code)])


def _refused(path: Path, rule: str) -> InputError:
    return InputError([Complaint(place=str(path), key="", rule=rule)])


def _too_large(path: Path, limit_bytes: int, found: str) -> InputError:
    rule = f"must not be larger than {limit_bytes // _MIB} MiB"
    return InputError([Complaint(place=str(path), key="", rule=rule, found=found)])
