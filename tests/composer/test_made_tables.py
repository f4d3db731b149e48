"""A dense model on tables made from a rule, so that its step can be written down."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.composer import Asked, composed
from capplan.composer.cached import filled
from capplan.composer.flaws import falls
from capplan.composer.term import Term
from capplan.errors import InputError
from capplan.physics.load import decode_load, prefill_load
from capplan.physics.operators import Limits, Silicon, Table
from capplan.physics.sharding import Split
from capplan.records.caveat import Source
from deployed import model

SAID = Source(what="made from a rule", where="here", licence="CC0")
LAUNCH_S, WEIGHT_S, FLOP_S = 2e-6, 1e-12, 1e-15
PAIR_S, READ_S, ELEMENT_S, SMALL_S = 4e-12, 8e-11, 1e-11, 1e-6
SIZES = (1, 64, 1024, 32768)
WIDTHS = (128, 1024, 4096, 6144, 28672, 65536)


def made(names, rows, time_s, **same):
    columns = {name: np.array(column) for name, column in zip(names, zip(*rows), strict=True)}  # noqa: B905
    constant = {name: np.full(len(rows), value) for name, value in same.items()}
    times = np.array([time_s(*row) for row in rows])
    return (Table(columns | constant | {"latency_s": times}, "1", SAID),)


def gemm_s(m, n, k):
    return LAUNCH_S + WEIGHT_S * n * k + FLOP_S * m * n * k


HEADS = {"num_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "window_size": 0,
         "kv_cache_dtype": "bfloat16"}  # fmt: skip
TABLES = {
    "gemm": made("mnk", list(product(SIZES, WIDTHS, WIDTHS)), gemm_s, gemm_dtype="bfloat16"),
    "generation_attention": made(
        ("batch_size", "step"), list(product((1, 256), (0, 65535))),
        lambda batch, step: LAUNCH_S + READ_S * batch * (step + 1), **HEADS,
    ),
    "context_attention": made(
        ("isl",), [(1,), (4096,), (8192,)],
        lambda isl: LAUNCH_S + PAIR_S * isl**2 / 2, batch_size=1, **HEADS,
    ),
    "scale_matrix": made("mk", list(product(SIZES, (128, 65536))), lambda _m, _k: SMALL_S),
}  # fmt: skip


def tables(**other):
    held = TABLES | other
    return Silicon(
        "made", "vllm", Limits(1e12, 1e15, 80e9, 8, SAID), ("vllm",),
        lambda _library, operator: held.get(operator, ()),
    )  # fmt: skip


def asked(**other):
    usual = {"weights": "bf16", "experts": None, "cache": "bf16"}
    return Asked(model("llama-3.1-8b"), "made", Split(1, 1), "vllm", **(usual | other))


LLAMA = composed(asked(), tables())
SHAPES = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))
VOCABULARY = 128256


@given(
    st.integers(1, 128), st.integers(1, 65536), st.integers(1, 4), st.sampled_from([0, 16, 4096])
)
def test_the_step_is_what_the_rule_says(batch, context, query, prefill):
    tokens = batch * query + prefill
    layer_s = sum(gemm_s(tokens, n, k) for n, k in SHAPES) + 4 * SMALL_S
    decode_s = max(LAUNCH_S + READ_S * batch * context, PAIR_S * batch * query * context)
    # The table of prefill is straight between its chunks.
    chunk_s = np.interp(prefill, [1, 4096], [LAUNCH_S + PAIR_S / 2, LAUNCH_S + PAIR_S * 2**23])
    attention_s = decode_s + (chunk_s if prefill else 0)
    rows = batch * query + (prefill > 0)
    head_s = 2 * gemm_s(rows, VOCABULARY / 2, 4096)  # two pieces that the table holds
    kernels_s = 32 * (layer_s + attention_s) + head_s + 0.5e-3
    launched_s = 60e-6 * (32 * 9 + 2) if prefill else 0
    found = LLAMA.step_s(decode_load(batch, context, query, prefill))
    assert found == pytest.approx(max(kernels_s, launched_s), rel=1e-6)


@given(st.integers(1, 255), st.integers(1, 60000), st.integers(1, 8))
def test_more_of_anything_takes_longer(batch, context, query):
    here = LLAMA.step_s(decode_load(batch, context, query))
    more = ((batch + 1, context, query), (batch, context + 1, query), (batch, context, query + 1))
    for load in more:
        assert LLAMA.step_s(decode_load(*load)) >= here * (1 - 1e-12)


def test_a_grid_is_the_same_as_its_cells():
    batch, context = np.meshgrid([1, 7, 64], [100, 5000])
    together = LLAMA.step_s(decode_load(batch, context, 3))
    assert together.shape == batch.shape
    for place in np.ndindex(batch.shape):
        one = LLAMA.step_s(decode_load(batch[place], context[place], 3))
        assert one == pytest.approx(together[place])


def test_parts_add_up():
    load = prefill_load([16, 4096], [0, 2048])
    assert sum(LLAMA.parts_s(load).values()) == pytest.approx(LLAMA.step_s(load))


def test_every_missing_table_is_named_at_once():
    with pytest.raises(InputError) as refused:
        composed(asked(cache="fp8"), tables(gemm=()))
    said = str(refused.value)
    assert "no table of matrix products" in said
    with pytest.raises(InputError, match="no table of these heads and this cache"):
        composed(asked(cache="fp8"), tables())


def test_times_that_fall_are_named():
    def cliff(load):
        return np.where(load.batch > 32, 1e-3, 2e-3)

    steady = Term("head", "steady", 1, lambda load: load.batch * 1e-6, ())
    (caveat,) = falls((Term("dense", "a cliff", 1, cliff, ()), steady))
    assert "a cliff fall as the batch grows: 50 % less" in caveat.text
    assert not list(falls((steady,)))


@given(st.lists(st.booleans(), min_size=5, max_size=5).filter(lambda known: sum(known) >= 2))
def test_holes_on_a_line_are_filled_with_the_line(known):
    along = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    line = 3.0 + 2.0 * along
    found = filled(np.where(known, line, np.nan)[None], along)[0]
    first = int(np.argmax(known))
    assert found[first:] == pytest.approx(line[first:])
    assert (found[:first] == line[first]).all()
