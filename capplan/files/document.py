"""YAML to a tree that remembers where in the file everything stands."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from capplan.errors import InputError
from capplan.files.composer import Composer
from capplan.files.findings import Findings, KeyPath, place_of, position_of
from capplan.files.text import read_text

LARGEST_BYTES = 16 << 20


@dataclass(frozen=True)
class Document:
    """The tree of one file, and the position of each key and list item in it."""

    path: Path
    tree: Any
    places: dict[tuple[str | int, ...], tuple[int, int]]

    def place(self, key_path: KeyPath) -> str:
        """`file:line:column` of a key, or of the nearest thing around it."""
        return place_of(self.path, position_of(self.places, key_path))


def read_document(path: Path) -> Document:
    """The tree of a YAML 1.2 (or JSON) file.

    Raises:
        InputError: With all that is wrong with the file as YAML.
    """
    tree, findings = compose(path)
    findings.check()
    return Document(path, tree, findings.places)


def compose(path: Path) -> tuple[Any, Findings]:
    """The tree of a file as far as it can be used, with what was found wrong with it.

    Raises:
        InputError: The file cannot be read, or stops being YAML at some point.
    """
    text = read_text(path, LARGEST_BYTES)
    composer = Composer(path)
    composer.run(text)
    if composer.root is None:
        composer.findings.add((), "is empty")
        composer.findings.check()
    return composer.root, composer.findings


def compose_start(path: Path, size_bytes: int) -> Any:
    """The tree of a file's first lines; None where they are no use. For a cheap look inside."""
    try:
        with path.open("rb") as file:
            text = file.read(size_bytes).decode("utf-8-sig", errors="replace")
    except OSError:
        return None
    composer = Composer(path)
    # Cut off somewhere: the end will not parse, what stands before it does.
    with suppress(InputError, yaml.YAMLError):
        composer.run(text)
    return composer.root
