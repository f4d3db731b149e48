"""A YAML file of others, with the place of every key.

Our own files are stricter (files/document.py); theirs have numbers for keys, which become text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from capplan.errors import Complaint, InputError

KeyPath = tuple[str | int, ...]
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class SourceFile:
    """What a file holds."""

    path: Path
    tree: Any
    lines: dict[KeyPath, int]

    def place(self, key_path: KeyPath) -> str:
        """`file:line` of a key, or of the nearest thing around it."""
        ends = range(len(key_path), -1, -1)
        line = next((self.lines[key_path[:end]] for end in ends if key_path[:end] in self.lines), 1)
        return f"{self.path}:{line}"


def source_file(path: Path) -> SourceFile:
    """Reads a file.

    Raises:
        InputError: It cannot be read, or is not YAML.
    """
    try:
        text = path.read_text(encoding="utf-8")
        _without_aliases(path, text)
        loader = _LOADER(text)
        node = loader.get_single_node()
        tree = _tree(loader, node)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Complaint(str(path), "", f"cannot be read: {error}")]) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(
            [Complaint(f"{path}:{line}", "", f"is not YAML: {error.problem}")]
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError([Complaint(str(path), "", f"is not YAML: {error}")]) from error
    return SourceFile(path, tree, dict(_lines(node, ())))


def _without_aliases(path: Path, text: str) -> None:
    """A few aliases of aliases unfold into more than any memory holds."""
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise InputError([Complaint(f"{path}:{line}", "", "aliases are not read")])


def _tree(loader: Any, node: Any) -> Any:
    """The content of a node, keys as text."""
    construct: Callable[[Any], Any] = loader.construct_object
    if isinstance(node, yaml.MappingNode):
        return {_key(key): _tree(loader, value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_tree(loader, value) for value in node.value]
    return None if node is None else construct(node)


def _key(node: Any) -> str:
    """A key as it is written; one that is a list or a mapping has no such words."""
    return str(node.value) if isinstance(node, yaml.ScalarNode) else "?"


def _lines(node: Any, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if node is None:
        return
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _lines(value, (*path, _key(key)))
            # A key's own line, not that of a block which begins below it.
            yield (*path, _key(key)), key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*path, index))
