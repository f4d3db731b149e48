"""Composes a tree from the events of PyYAML's parser.

Without recursion, so that no nesting can overflow the stack. Of YAML only what a hand-written
file needs is taken: one document, mappings with text keys, lists and scalars. Anchors, aliases
and tags are refused, which also keeps a small file from unfolding into a huge one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from capplan.files.findings import Findings, KeyPath, Places, Position, shown
from capplan.files.scalars import resolve

DEEPEST = 64
"""Levels of nesting; capplan's own formats need eight."""
MOST_NODES = 500_000
"""Keys and list items of one file: a year in steps of five minutes is a fifth of that."""

# The parser in C is ten times faster; some builds of PyYAML lack it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONTROL_IN_KEY = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Reach a value only by escapes; lines and tabs are text there, a key is a word."""
_TAB_INDENT = re.compile(r"^[ \t]*\t", re.MULTILINE)
_NOTHING: KeyPath = ("\0",)
"""No key of any file: what is found there settles nothing else."""
_SKIPPED = object()
"""Stands for a key that was complained about: its value is dropped."""


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet."""

    value: Any
    path: KeyPath
    key: Any = None


def _position(mark: Any) -> Position:
    return mark.line + 1, mark.column + 1


class Composer:
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

    def run(self, text: str) -> None:
        """Composes a whole text.

        Raises:
            InputError: It stops being YAML, or is too deep, too large, or more than one document.
        """
        if text.lstrip()[:1] in ("{", "["):
            # JSON may be indented with tabs, which PyYAML's parser in Python does not take.
            text = _TAB_INDENT.sub(lambda match: " " * len(match.group()), text)
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

    def _refuse(
        self,
        event: Any,
        rule: str,
        remedy: str | None = None,
        *,
        found: str | None = None,
        settles: KeyPath = _NOTHING,
    ) -> None:
        at = _position(event.start_mark)
        self.findings.add(self._here(), rule, found=found, remedy=remedy, at=at, settles=settles)

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
        if isinstance(value, str) and (control := self._control.search(value)):
            # As of an alias: a value is missing, or a whole mapping cannot be judged.
            rule, code = "control characters are not allowed", f"U+{ord(control.group()):04X}"
            self._refuse(event, rule, found=code, settles=self._here())
            self._attach(None, event.start_mark, settled=True)
            return
        self._attach(value, event.start_mark)

    @property
    def _control(self) -> re.Pattern[str]:
        """What the text that comes next must not hold."""
        top = self._open[-1] if self._open else None
        is_key = top is not None and type(top.value) is dict and top.key is None
        return _CONTROL_IN_KEY if is_key else _CONTROL

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
