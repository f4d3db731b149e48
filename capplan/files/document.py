"""YAML to a tree that remembers where in the file everything stands.

The tree is composed from the parser's events without recursion, so that no nesting can overflow
the stack. Of YAML only what a hand-written file needs is taken: one document, mappings with text
keys, lists and scalars. Anchors, aliases and tags are refused, which also keeps a small file from
unfolding into a huge one.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from capplan.errors import InputError
from capplan.files.findings import Findings, KeyPath, Places, Position, place_of, position_of, shown
from capplan.files.scalars import resolve
from capplan.files.text import read_text

LARGEST_BYTES = 16 << 20
DEEPEST = 64
"""Levels of nesting; capplan's own formats need eight."""
MOST_NODES = 500_000
"""Keys and list items of one file: a year in steps of five minutes is a fifth of that."""

# The parser in C is ten times faster; some builds of PyYAML lack it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # YAML 1.2.2, 5.1
)
_NOTHING: KeyPath = ("\0",)
"""No key of any file: what is found there settles nothing else."""
_SKIPPED = object()
"""Stands for a key that was complained about: its value is dropped."""


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
    composer = _Composer(path)
    composer.check_characters(text)
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
    composer = _Composer(path)
    # Cut off somewhere: the end will not parse, what stands before it does.
    with suppress(InputError):
        composer.run(text)
    return composer.root


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet."""

    value: Any
    path: KeyPath
    key: Any = None


def _position(mark: Any) -> Position:
    return mark.line + 1, mark.column + 1


class _Composer:
    """Builds the tree from events; attaches containers when they open."""

    def __init__(self, path: Path) -> None:
        self.root: Any = None
        self.places: Places = {}
        self.findings = Findings(path, self.places)
        self._open: list[_Open] = []
        self._documents = 0
        self._handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.MappingStartEvent: lambda event: self._start(event, {}),
            yaml.SequenceStartEvent: lambda event: self._start(event, []),
            yaml.MappingEndEvent: lambda _: self._end(),
            yaml.SequenceEndEvent: lambda _: self._end(),
            yaml.DocumentStartEvent: self._document,
        }

    def check_characters(self, text: str) -> None:
        """Refuses what no text file holds, with its position (libyaml names only an offset)."""
        if (match := _UNPRINTABLE.search(text)) is None:
            return
        before = text[: match.start()]
        position = before.count("\n") + 1, match.start() - before.rfind("\n")
        code = f"U+{ord(match.group()):04X}"
        self.findings.add((), "control characters are not allowed", found=code, at=position)
        self.findings.check()

    def run(self, text: str) -> None:
        handlers = self._handlers
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                handler = handlers.get(type(event))
                if handler is not None:
                    handler(event)
        except yaml.MarkedYAMLError as error:
            self._syntax(error, text)

    def _syntax(self, error: yaml.MarkedYAMLError, text: str) -> None:
        mark = error.problem_mark or error.context_mark
        position = _position(mark) if mark else None
        lines = text.splitlines()
        at_tab = mark and mark.line < len(lines) and lines[mark.line][mark.column :][:1] == "\t"
        remedy = "indent with spaces, not tabs" if at_tab else None
        problem = " ".join(part for part in (error.context, error.problem) if part)
        self.findings.add((), f"is not YAML: {problem}", at=position, remedy=remedy)
        self.findings.check()

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            self._refuse(event, "one file holds one document", "write the second to its own file")
            self.findings.check()

    def _refuse(self, event: Any, rule: str, remedy: str, *, settles: KeyPath = _NOTHING) -> None:
        at = _position(event.start_mark)
        self.findings.add(self._here(), rule, remedy=remedy, at=at, settles=settles)

    def _here(self) -> KeyPath:
        """Path of the node that is about to be attached."""
        if not self._open:
            return ()
        top = self._open[-1]
        if type(top.value) is list:
            return (*top.path, len(top.value))
        return (*top.path, top.key) if isinstance(top.key, str) else top.path

    def _scalar(self, event: Any) -> None:
        if event.anchor or event.tag:
            self._no_decoration(event)
        # Quoted, literal and folded scalars are text whatever they look like.
        value = resolve(event.value) if event.implicit[0] else event.value
        self._attach(value, event.start_mark)

    def _alias(self, event: Any) -> None:
        # Its value is missing now; where it is a key, the whole mapping cannot be judged.
        remedy = f"write out what *{event.anchor} means"
        self._refuse(event, "aliases are not supported", remedy, settles=self._here())
        self._attach(None, event.start_mark, settled=True)

    def _no_decoration(self, event: Any) -> None:
        if event.anchor:
            self._refuse(event, "anchors are not supported", f"leave out &{event.anchor}")
        if event.tag:
            self._refuse(event, "tags are not supported", f"leave out {event.tag}")

    def _start(self, event: Any, value: Any) -> None:
        if event.anchor or event.tag:
            self._no_decoration(event)
        path = self._here()
        self._attach(value, event.start_mark)
        self._open.append(_Open(value, path))
        if len(self._open) > DEEPEST:
            self._refuse(event, f"is nested more than {DEEPEST} levels deep", "check the brackets")
            self.findings.check()

    def _end(self) -> None:
        self._open.pop()

    def _attach(self, value: Any, mark: Any, *, settled: bool = False) -> None:
        if not self._open:
            self.root = value
            self.places[()] = _position(mark)
            return
        if len(self.places) > MOST_NODES:
            rule = f"holds more than {MOST_NODES:,} keys and items"
            remedy = "put long series in a CSV file beside it"
            self.findings.add((), rule, at=_position(mark), remedy=remedy)
            self.findings.check()
        top = self._open[-1]
        if type(top.value) is list:
            self.places.setdefault((*top.path, len(top.value)), _position(mark))
            top.value.append(value)
        elif top.key is None:
            top.key = self._key(top, value, mark, settled=settled)
        else:
            if top.key is not _SKIPPED:
                top.value[top.key] = value
            top.key = None

    def _key(self, top: _Open, value: Any, mark: Any, *, settled: bool) -> Any:
        """Takes a node that stands where a key belongs."""
        position = _position(mark)
        if not isinstance(value, str):
            if not settled:
                scalar = not isinstance(value, (dict, list))
                remedy = f'write "{shown(value)}"' if scalar and value is not None else None
                text = shown(value) if scalar else None
                rule = "keys must be text"
                self.findings.add(
                    top.path, rule, found=text, remedy=remedy, at=position, settles=_NOTHING
                )
            return _SKIPPED
        path = (*top.path, value)
        if value in top.value:
            first = self.places[path][0]
            rule = f"key stands twice, first in line {first}"
            self.findings.add(path, rule, at=position, remedy="remove one of the two")
            return _SKIPPED
        self.places.setdefault(path, position)
        return value
