"""Lines of a text file, gzip or not; a damaged file is a bad row where it breaks."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capplan.errors import Complaint, InputError
from capplan.importers.traces.ledger import Ledger

_GZIP = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[io.TextIOBase]:
    """The text of a file, unpacked if it is gzip.

    Bytes that are no UTF-8 pass as surrogates: a column that is not asked for may hold anything,
    one that is asked for refuses them.

    Raises:
        InputError: The file cannot be opened.
    """
    try:
        raw = path.open("rb")
    except OSError as error:
        rule = "no such file" if isinstance(error, FileNotFoundError) else "cannot be read"
        found = None if isinstance(error, FileNotFoundError) else error.strerror
        raise InputError([Complaint(str(path), "", rule, found)]) from error
    with raw:
        packed = raw.peek(2)[:2] == _GZIP
        stream = gzip.GzipFile(fileobj=raw) if packed else raw
        with io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="") as text:
            yield text


def lines(path: Path, text: io.TextIOBase, ledger: Ledger) -> Iterator[str]:
    """Lines with their ends, as far as they can be read.

    Raises:
        InputError: The file breaks off, and that is more than the ledger allows.
    """
    number = 0
    try:
        for line in text:
            number += 1
            yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        rule = "the gzip file breaks off" if isinstance(error, EOFError) else "is damaged gzip"
        ledger.add(Complaint(f"{path}:{number + 1}", "", rule, remedy="fetch it again"))


def whole(path: Path) -> str:
    """All of a small file's text.

    Raises:
        InputError: It cannot be read to its end.
    """
    ledger = Ledger()
    with opened(path) as text:
        found = "".join(lines(path, text, ledger))
    ledger.check()
    return found
