"""Real configurations with something changed: read or refused, never a failure or a zero."""

import copy
import math
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import real_configs as real
from capplan.errors import InputError
from capplan.importers.hugging_face.config import architecture
from capplan.importers.hugging_face.stored import Quantization
from capplan.physics.cache import held_bytes, kv_bytes_per_token, state_bytes_per_sequence
from capplan.physics.parameters import count_parameters
from capplan.physics.stored_bytes import stored_bytes
from capplan.records.architecture import Architecture

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**200), 2**200),
    st.just(10**400),
    st.floats(),
    st.sampled_from(["", "7168", "silu", "full_attention", "re:(a|b)*", "*", "fp8", "\x00", "é"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["hidden_size", "x", "no_op", "num_bits"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every key path of a tree, and the first entries of its lists."""
    if isinstance(tree, dict):
        found = [(*path, key) for key in tree]
    elif isinstance(tree, list):
        found = [(*path, number) for number in range(min(2, len(tree)))]
    else:
        return []
    return found + [deeper for place in found for deeper in places(tree[place[-1]], place)]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(file=st.sampled_from(sorted(real.ENTRIES)), data=st.data())
def test_a_changed_file_is_read_or_refused(file: str, data: st.DataObject) -> None:
    tree = copy.deepcopy(real.ENTRIES[file]["config"])
    for _ in range(data.draw(st.integers(1, 3))):
        change(tree, data)
    quant = copy.deepcopy(real.expanded(real.ENTRIES[file].get("quant")))
    if quant is not None and data.draw(st.booleans()):
        change(quant, data)
    beside = None if quant is None else Quantization(quant, real.where)
    try:
        found = architecture(tree, "test", real.where, beside)
    except InputError:
        return
    check(found)


@given(VALUES)
def test_anything_else_is_refused(tree: Any) -> None:
    try:
        architecture(tree, "test", real.where)
    except InputError:
        return
    raise AssertionError


def change(tree: Any, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(places(tree) or [()]))
    if not path:
        return
    holder = tree
    for step in path[:-1]:
        holder = holder[step]
    deed = data.draw(st.sampled_from(["replace", "replace", "remove", "nest", "repeat"]))
    if deed == "remove":
        del holder[path[-1]]
    elif deed == "nest":
        holder[path[-1]] = {"text_config": holder[path[-1]]}
    elif deed == "repeat":
        holder[path[-1]] = [holder[path[-1]]] * 3
    else:
        holder[path[-1]] = data.draw(VALUES)


def check(found: Architecture) -> None:
    counted = count_parameters(found)
    assert 0 < counted.active <= counted.total
    assert counted.total >= found.vocabulary * found.hidden_size
    kept = [kv_bytes_per_token(found, 2), state_bytes_per_sequence(found, 2)]
    assert all(math.isfinite(size) and size >= 0 for size in kept)
    mixing = any(kind.attention.kind not in {"none", "cross"} for kind in found.layer_kinds)
    assert (held_bytes(found.layer_kinds, 1000, 2) > 0) == mixing
    assert found.stored is not None
    assert all(size >= 0 for size in stored_bytes(counted, found.stored).values())
    assert Architecture.model_validate_json(found.model_dump_json()) == found
