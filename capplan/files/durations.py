"""Durations with a unit: `ttft_p99: 45ms` stands for `ttft_p99_s: 0.045`."""

import re
from dataclasses import dataclass
from typing import Any

from capplan.files.findings import Findings, KeyPath, shown
from capplan.files.shape import duration_keys, inside
from capplan.records.base import Record

PATTERN = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(us|µs|μs|ms|s|min|h|d)"
_DURATION = re.compile(PATTERN, re.ASCII)
_PER_SECOND = {"us": 1e6, "µs": 1e6, "μs": 1e6, "ms": 1e3}
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Written:
    """How a duration stands in the file, for complaints about what it became."""

    key_path: KeyPath
    value: str


Durations = dict[KeyPath, Written]


def seconds(text: str) -> float | None:
    """Seconds [s] of a number with a unit (us, ms, s, min, h or d); None for anything else.

    >>> [seconds(text) for text in ("45ms", "2s", "12 min", "1.5 h", "90us", "1d", "7", "1 week")]
    [0.045, 2.0, 720.0, 5400.0, 9e-05, 86400.0, None, None]
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    number, unit = float(match.group(1)), match.group(2)
    # Divided, not multiplied by 1e-3: 45 / 1e3 is the float nearest to 0.045.
    return number / _PER_SECOND[unit] if unit in _PER_SECOND else number * _SECONDS[unit]


def resolve_durations(tree: Any, kind: type[Record], findings: Findings) -> Durations:
    """Replaces every duration with a unit by seconds under the record's own key, in place.

    Returns:
        How each of them was written.
    """
    durations: Durations = {}
    if isinstance(tree, dict):
        _walk(tree, (kind,), (), findings, durations)
    return durations


def _walk(
    node: Any, kinds: tuple[Any, ...], path: KeyPath, findings: Findings, durations: Durations
) -> None:
    if isinstance(node, dict) and (names := duration_keys(kinds)):
        _resolve(node, names, path, findings, durations)
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        # Rows hold thousands of numbers: look only where a mapping can be.
        if isinstance(value, (dict, list)):
            _walk(value, inside(kinds, key), (*path, key), findings, durations)


def _resolve(
    node: dict[str, Any],
    names: frozenset[str],
    path: KeyPath,
    findings: Findings,
    durations: Durations,
) -> None:
    """Takes the durations `names` of a mapping, `step_s`, where they are written as `step`."""
    written = dict(node)
    # Filled anew, so that the keys keep the order of the file.
    node.clear()
    for key, value in written.items():
        name = f"{key}_s"
        if name not in names:
            node[key] = value
            if key in names and key.removesuffix("_s") not in written:
                _check_bare(key, value, path, findings)
        elif name in written:
            rule, remedy = f"stands beside {name}", "remove one of the two"
            there = (*path, name)
            findings.add((*path, key), rule, found=shown(value), remedy=remedy, settles=there)
        else:
            node[name] = _take(key, value, path, findings, durations)


def _check_bare(name: str, value: Any, path: KeyPath, findings: Findings) -> None:
    """Complains of a unit under a key that ends in seconds."""
    if isinstance(value, str) and seconds(value) is not None:
        rule, remedy = "must be a number of seconds", f"write {name.removesuffix('_s')}: {value}"
        findings.add((*path, name), rule, found=shown(value), remedy=remedy)


def _take(
    short: str, value: Any, path: KeyPath, findings: Findings, durations: Durations
) -> float | None:
    """Seconds [s] of one duration; where it is wrong, complains and gives a stand-in of one."""
    name = f"{short}_s"
    here, there = (*path, short), (*path, name)
    findings.places[there] = findings.places[here]
    if value is None:
        return None
    if isinstance(value, str):
        durations[there] = Written(here, value)
        if (taken := seconds(value)) is not None:
            return taken
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        remedy = f"write {short}: {value:g}s or {name}: {value:g}"
        findings.add(here, "needs a unit", found=shown(value), remedy=remedy, settles=there)
    else:
        rule = "must be a duration with a unit: us, ms, s, min, h or d"
        remedy = f"write for example {short}: 2s"
        findings.add(here, rule, found=shown(value), remedy=remedy, settles=there)
    return 1.0
