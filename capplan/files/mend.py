"""New values into the text of a YAML file, its comments and order left as they are."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import yaml

_INDENT = "  "


@dataclass(frozen=True)
class _Entry:
    """A key of a block mapping: the lines that it and its value cover, and its column."""

    first: int
    last: int
    """Line behind the value's last."""
    column: int
    end_column: int
    """Where on its last line the value ends."""
    node: Any


def mended(text: str, fresh: str, keys: Collection[str], item_keys: Collection[str] = ()) -> str:
    """The text with some keys' values taken from another text of the same format.

    Keys that the other text lacks are taken out; keys that this one lacks are put behind the last
    of their mapping.

    Args:
        text: The file as people have it.
        fresh: The new one, in block style.
        keys: Keys of the outermost mapping to renew.
        item_keys: Keys to renew in each item of `classes`, which both have in the same order, or
            not at all.

    Raises:
        ValueError: The text is not in block style where it must be changed.
        yaml.YAMLError: The same.
    """
    old, new = yaml.compose(text, yaml.SafeLoader), yaml.compose(fresh, yaml.SafeLoader)
    lines, source = text.splitlines(), fresh.splitlines()
    changes = _changes(old, new, keys, source)
    pairs = zip(_items(old), _items(new), strict=True)
    for mine, theirs in pairs:
        changes += _changes(mine, theirs, item_keys, source)
    for first, last, replacement in sorted(changes, key=lambda change: -change[0]):
        lines[first:last] = replacement(lines)
    result = "\n".join(lines) + "\n"
    _check(yaml.safe_load(result), yaml.safe_load(fresh), keys, item_keys)
    return result


def _check(found: Any, wanted: Any, keys: Collection[str], item_keys: Collection[str]) -> None:
    """The new text says what it should, however the old one was laid out."""
    pairs = [(found, wanted, keys)]
    pairs += [
        (mine, theirs, item_keys)
        for mine, theirs in zip(found.get("classes", ()), wanted.get("classes", ()), strict=True)
    ]
    if any(mine.get(key) != theirs.get(key) for mine, theirs, own in pairs for key in own):
        raise ValueError("cannot be changed in place")


def _items(root: Any) -> list[Any]:
    found = _entries(root).get("classes")
    return [] if found is None else list(found.node.value)


def _entries(mapping: Any) -> dict[str, _Entry]:
    """Keys of a block mapping with what they cover."""
    if not isinstance(mapping, yaml.MappingNode) or mapping.flow_style:
        raise ValueError("is not in block style")
    found = {}
    for key, value in mapping.value:
        end = _end(value)
        found[key.value] = _Entry(
            key.start_mark.line, end.line + 1, key.start_mark.column, end.column, value
        )
    return found


def _end(node: Any) -> Any:
    """Where the last scalar or bracket of a node ends; a block's own mark lies behind comments."""
    while not isinstance(node, yaml.ScalarNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node.end_mark


def _changes(old: Any, new: Any, keys: Collection[str], source: list[str]) -> list[Any]:
    """Lines to replace: first, last and what makes the replacement of the lines then there."""
    mine, theirs = _entries(old), _entries(new)
    column = next(iter(mine.values())).column
    bottom = max(entry.last for entry in mine.values())
    changes: list[Any] = []
    added: list[str] = []
    for key in keys:
        block = _moved(source, theirs[key], column) if key in theirs else []
        if key in mine:
            entry = mine[key]
            changes.append((entry.first, entry.last, _Replacement(block, entry)))
        else:
            added += block
    if added:
        changes.append((bottom, bottom, lambda _: added))
    return changes


@dataclass(frozen=True)
class _Replacement:
    """New lines for a key, what stood before and behind it on its lines kept."""

    block: list[str]
    entry: _Entry

    def __call__(self, lines: list[str]) -> list[str]:
        first, last = lines[self.entry.first], lines[self.entry.last - 1]
        before = first[: self.entry.column]
        comment = last[self.entry.end_column :].rstrip()
        if not self.block:
            if before.strip():
                raise ValueError("the key stands behind a list's dash")
            return []
        block = [before + self.block[0].lstrip(), *self.block[1:]]
        if len(block) == 1 and comment:
            block[0] += comment
        return block


def _moved(source: list[str], entry: _Entry, column: int) -> list[str]:
    """Lines of an entry, indented for another mapping."""
    block = source[entry.first : entry.last]
    first = block[0][entry.column :]
    rest = [line[entry.column :] for line in block[1:]]
    return [" " * column + line for line in (first, *rest)]
