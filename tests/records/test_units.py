"""Names and units agree, in every record."""

import importlib
import pkgutil
import typing
from types import UnionType

import pytest
from pydantic.fields import FieldInfo

from capplan import records
from capplan.records.base import Record
from capplan.records.forecast import Lengths
from capplan.units import NO_SUFFIX, Unit

UNIT_OF_THE_HOLDER = ("quantiles", "tokens")
"""Lengths.quantiles: what holds a Lengths is called input_tokens or output_tokens."""


def all_records() -> list[type[Record]]:
    for module in pkgutil.iter_modules(records.__path__, "capplan.records."):
        importlib.import_module(module.name)
    found, waiting = [], [Record]
    while waiting:
        record = waiting.pop()
        waiting += record.__subclasses__()
        if record.__module__.startswith("capplan.records"):
            found.append(record)
    return found


def numbers(annotation: object, metadata: tuple[object, ...] = ()) -> list[tuple[type, list[Unit]]]:
    """Each number type inside an annotation, with the units that stand on it."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return numbers(arguments[0], (*metadata, *arguments[1:]))
    if annotation in (int, float):
        return [(annotation, [item for item in metadata if isinstance(item, Unit)])]
    if origin in (typing.Union, UnionType):
        # A unit may stand on the whole union.
        return [number for part in arguments for number in numbers(part, metadata)]
    if origin in (tuple, dict):
        values = arguments[1:] if origin is dict else arguments
        return [number for part in values for number in numbers(part)]
    return []


def keys(annotation: object) -> list[str]:
    """The literal keys of a mapping, whose names carry the unit instead of the field's."""
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is dict and typing.get_origin(arguments[0]) is typing.Literal:
        return list(typing.get_args(arguments[0]))
    return []


def whole(field: FieldInfo) -> object:
    if not field.metadata:
        return field.annotation
    return typing.Annotated[field.annotation, *field.metadata]


FIELDS = [
    pytest.param(name, field, id=f"{record.__name__}.{name}")
    for record in all_records()
    for name, field in record.model_fields.items()
]


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_a_float_carries_the_unit_its_name_ends_in_and_an_int_counts(
    name: str, field: FieldInfo
) -> None:
    for kind, units in numbers(whole(field)):
        if kind is int:
            assert not units, "whole numbers are bare counts"
            continue
        assert len(units) == 1, "has no unit"
        (unit,) = units
        if unit == NO_SUFFIX:
            continue
        if (name, unit.suffix) == UNIT_OF_THE_HOLDER:
            continue
        # `ttft_p99_s`: where the keys are known they carry the suffix.
        named = [key for key in keys(field.annotation) if key.endswith(f"_{unit.suffix}")]
        assert named or name == unit.suffix or name.endswith(f"_{unit.suffix}"), unit.suffix


def test_lengths_stand_only_where_the_name_says_tokens() -> None:
    holders = [
        name
        for record in all_records()
        for name, field in record.model_fields.items()
        if Lengths in (field.annotation, *typing.get_args(field.annotation))
    ]
    assert holders
    assert all(name.endswith("_tokens") for name in holders)


def test_the_walk_sees_numbers_inside_everything() -> None:
    inner = typing.Annotated[float, Unit("s")]
    assert numbers(tuple[inner, ...] | None) == [(float, [Unit("s")])]
    assert numbers(dict[str, inner]) == [(float, [Unit("s")])]
    assert numbers(typing.Annotated[float | None, Unit("s")]) == [(float, [Unit("s")])]
    assert numbers(dict[str, tuple[int, ...]]) == [(int, [])]


def test_every_record_is_walked() -> None:
    names = {record.__name__ for record in all_records()}
    assert {"Profile", "Fleet", "Forecast", "Architecture", "Origin"} <= names
