"""Which keys may stand where in a file, as the records declare it."""

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from capplan.files.findings import KeyPath
from capplan.records.base import Record
from capplan.units import Unit


def members(annotation: Any) -> tuple[Any, ...]:
    """The types that an annotation admits, None left out, with unions taken apart."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return members(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return tuple(kind for part in get_args(annotation) for kind in members(part))
    return () if annotation is NoneType else (annotation,)


@cache
def fields(record: type[Record]) -> dict[str, Any]:
    """Annotation of each field, metadata included."""
    return {
        name: Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        for name, field in record.model_fields.items()
    }


def inside(kinds: tuple[Any, ...], key: str | int) -> tuple[Any, ...]:
    """The types at `key` of a mapping or list that is one of `kinds`."""
    found: list[Any] = []
    for kind in kinds:
        if _is_record(kind):
            found += members(fields(kind).get(str(key), NoneType))
        elif get_origin(kind) is dict:
            found += members(get_args(kind)[1])
        elif get_origin(kind) is tuple:
            found += members(get_args(kind)[0])
    return tuple(found)


def kinds_at(record: type[Record], key_path: KeyPath) -> tuple[Any, ...]:
    """The types that may stand at a path of a file that holds `record`."""
    kinds: tuple[Any, ...] = (record,)
    for key in key_path:
        kinds = inside(kinds, key)
    return kinds


def known_keys(kinds: tuple[Any, ...], node: dict[str, Any]) -> list[str]:
    """Keys that a mapping of one of `kinds` may have, in field order."""
    known: list[str] = []
    for kind in kinds:
        if _is_record(kind) and _fits(kind, node):
            known += fields(kind)
        elif get_origin(kind) is dict:
            known += _literal_keys(kind)
    return known


def duration_keys(kinds: tuple[Any, ...]) -> frozenset[str]:
    """Keys in seconds that a mapping of one of `kinds` may have: `step_s`, `ttft_p99_s`."""
    return frozenset().union(*(_durations(kind) for kind in kinds))


def _durations(kind: Any) -> frozenset[str]:
    if _is_record(kind):
        return _durations_of_record(kind)
    if get_origin(kind) is dict and _in_seconds(get_args(kind)[1]):
        return frozenset(_literal_keys(kind))
    return frozenset()


@cache
def _durations_of_record(record: type[Record]) -> frozenset[str]:
    return frozenset(name for name, kind in fields(record).items() if _in_seconds(kind))


def _in_seconds(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        bare, *metadata = get_args(annotation)
        return Unit("s") in [item for item in metadata if isinstance(item, Unit)] or _in_seconds(
            bare
        )
    return origin in (Union, UnionType) and any(map(_in_seconds, get_args(annotation)))


def _literal_keys(kind: Any) -> list[str]:
    (keys,) = members(get_args(kind)[0])
    return list(get_args(keys)) if get_origin(keys) is Literal else []


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Record)


def _fits(record: type[Record], node: dict[str, Any]) -> bool:
    """Whether a mapping can be this member of a union: its `kind` says so."""
    return all(
        node[name] in get_args(kind)
        for name, kind in fields(record).items()
        if get_origin(kind) is Literal and name in node
    )
