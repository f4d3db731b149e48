"""Composed step times: each term alone, by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.physics.attention import Attention
from capplan.physics.composition import (
    AllReduce,
    Composition,
    DraftHead,
    LayerCost,
    SparseKernel,
    draft_s,
    step_s,
)
from capplan.physics.experts import independent_routing
from capplan.physics.load import decode_load, prefill_load
from capplan.physics.roofline import Curve, Roofline
from capplan.records.caveat import Source

HERE = Source(what="made up", where="this test")


def flat(time_s: float) -> Curve:
    return Curve((0, 1e9), (time_s, time_s), HERE)


def roofline(weights_bytes: float = 0.0, flop_per_row: float = 0.0) -> Roofline:
    return Roofline(
        launch_s=1e-6,
        bandwidth_bytes_per_s=1e12,
        flop_per_s=1e14,
        weights_bytes=weights_bytes,
        flop_per_row=flop_per_row,
        source=HERE,
    )


def attention(**changes: float | Curve) -> Attention:
    free = {
        "base": flat(0.0), "base_by_token": True, "rows_per_token": 8, "tile_rows": 64,
        "kv_s": 0.0, "row_kv_s": 0.0, "lone_kv_s": 0.0,
        "prefill_token_s": 0.0, "prefill_pair_s": 0.0, "cached_s": 0.0, "sources": (),
    }  # fmt: skip
    return Attention(**(free | changes))


def composition(**changes: object) -> Composition:
    free = {
        "fixed_s": 0.0,
        "fixed_source": HERE,
        "layers": (LayerCost(10, ()),),
        "attention": attention(),
        "all_reduce": AllReduce(flat(0.0), hidden_size=100),
        "head": flat(0.0),
    }
    return Composition(**(free | changes))


SPARSE = SparseKernel(
    routing=independent_routing(64, 4),
    constant_s=10e-6,
    expert_s=1e-6,
    token_s=0.5e-6,
    tile_tokens=100,
    source=HERE,
)


def test_a_curve_keeps_its_points_and_is_straight_between_them() -> None:
    curve = Curve((1, 256, 257), (1e-6, 2e-6, 5e-6), HERE)
    np.testing.assert_allclose(curve.at([1, 128.5, 256, 257]), [1e-6, 1.5e-6, 2e-6, 5e-6])


@pytest.mark.parametrize("size", [0, 258])
def test_a_curve_refuses_to_continue(size: int) -> None:
    with pytest.raises(ValueError, match="leave the table, which covers 1 to 257"):
        Curve((1, 256, 257), (1e-6, 2e-6, 5e-6), HERE).at(size)


def test_a_matrix_product_is_bound_by_memory_up_to_the_ridge_and_by_arithmetic_beyond() -> None:
    # 1e8 bytes take 100 us; a row of 1e8 flop takes 1 us: the ridge lies at 100 rows.
    kernel = roofline(weights_bytes=1e8, flop_per_row=1e8)
    np.testing.assert_allclose(kernel.at([1, 100, 200]), [101e-6, 101e-6, 201e-6])


def test_small_kernels_grow_with_the_rows_they_move() -> None:
    kernel = Roofline(2e-6, 1e12, 1e14, 0, 0, HERE, bytes_per_row=1e4)
    np.testing.assert_allclose(kernel.at([0, 1000]), [2e-6, 12e-6])


def test_the_fixed_time_is_all_that_an_empty_model_takes() -> None:
    step = step_s(composition(fixed_s=1e-3), decode_load([1, 64], 4096, 1))
    np.testing.assert_allclose(step, [1e-3, 1e-3])


def test_every_layer_runs_its_kernels_its_attention_and_two_all_reduces() -> None:
    whole = composition(
        layers=(LayerCost(10, (flat(3e-6), flat(4e-6))), LayerCost(2, (flat(100e-6),))),
        attention=attention(base=flat(5e-6)),
        all_reduce=AllReduce(flat(6e-6), hidden_size=100),
        head=flat(7e-6),
    )
    expected = 10 * (3e-6 + 4e-6) + 2 * 100e-6 + 12 * (5e-6 + 2 * 6e-6) + 7e-6
    assert step_s(whole, decode_load(1, 4096, 1)) == pytest.approx(expected)


def test_one_token_reads_its_own_experts() -> None:
    one = composition(layers=(LayerCost(1, (), SPARSE),))
    assert step_s(one, decode_load(1, 0, 1)) == pytest.approx(10e-6 + 4e-6)


def test_a_saturated_layer_reads_all_experts_and_then_computes() -> None:
    one = composition(layers=(LayerCost(1, (), SPARSE),))
    expected = 10e-6 + 64e-6 + 0.5e-6 * (1000 - 100)
    assert step_s(one, decode_load(250, 0, 4)) == pytest.approx(expected)


def test_all_reduces_count_elements() -> None:
    curve = Curve((0, 1e6), (0.0, 1.0), HERE)
    summed = AllReduce(curve, hidden_size=100)
    assert summed.at(5) == pytest.approx(2 * 500 / 1e6)


def test_grouped_queries_read_the_cache_once_for_all_query_tokens() -> None:
    model = composition(attention=attention(kv_s=1e-9, row_kv_s=1e-13))
    steps = step_s(model, decode_load(16, 1000, np.array([1, 4, 9])))
    np.testing.assert_allclose(steps, 10 * 16 * 1000 * 1e-9)


def test_latent_attention_becomes_compute_bound_past_its_tile() -> None:
    # NVIDIA's H200 slopes: 2.57e-10 s up to 64 rows, 3.77e-10 s at 128: 16 heads pay at 8 tokens.
    kernel = attention(rows_per_token=16, kv_s=2.57e-10, row_kv_s=3.77e-10 / 128)
    model = composition(attention=kernel)
    one, four, eight = step_s(model, decode_load(64, 8192, np.array([1, 4, 8])))
    assert four == pytest.approx(one)
    assert eight / one == pytest.approx(1.47, abs=0.005)


def test_a_lone_long_sequence_cannot_fill_the_gpu() -> None:
    model = composition(attention=attention(kv_s=1e-10, lone_kv_s=4e-10))
    steps = step_s(model, decode_load(np.array([1, 4, 8]), 1000, 1))
    np.testing.assert_allclose(steps, [4e-6, 4e-6, 8e-6])


def test_a_prefill_chunk_attends_to_what_is_cached_and_to_itself() -> None:
    kernel = attention(prefill_token_s=1e-6, prefill_pair_s=1e-9, cached_s=2e-9)
    model = composition(attention=kernel)
    steps = step_s(model, prefill_load(100, [0, 1000]))
    own, cached = 100e-6 + 5000e-9, 100 * 1000 * 1e-9 + 1000 * 2e-9
    np.testing.assert_allclose(steps, [10 * own, 10 * (own + cached)])


def test_only_the_last_row_of_a_chunk_needs_logits() -> None:
    curve = Curve((0, 100), (0.0, 100e-6), HERE)
    model = composition(head=curve)
    assert step_s(model, decode_load(8, 0, 4)) == pytest.approx(32e-6)
    assert step_s(model, decode_load(8, 0, 4, prefill_tokens=64)) == pytest.approx(33e-6)
    assert step_s(model, prefill_load(64, 0)) == pytest.approx(1e-6)


def test_drafting_runs_the_layer_over_the_verified_tokens_then_once_a_draft() -> None:
    drafter = DraftHead(
        round_s=1e-3,
        round_source=HERE,
        fuse=roofline(),
        layer=roofline(flop_per_row=1e9),
        head=roofline(),
        kv_s=1e-9,
        all_reduce=AllReduce(flat(2e-6), hidden_size=100),
    )
    # batch 2, 3 drafts: 8 rows verified; a row of 1e9 flop takes 10 us, each kernel 1 us more.
    verified, later = 1e-6 + 80e-6 + 4e-6, 1e-6 + 20e-6 + 4e-6
    each = 1e-6 + 2 * 500 * 1e-9
    expected = 1e-3 + 1e-6 + verified + 2 * later + 3 * each
    assert draft_s(drafter, decode_load(2, 500, 4)) == pytest.approx(expected)


@settings(deadline=None)
@given(st.integers(1, 64), st.integers(1, 8), st.integers(0, 10_000))
def test_more_work_never_takes_less_time(batch: int, query: int, context: int) -> None:
    model = composition(
        layers=(LayerCost(3, (roofline(1e8, 1e8),), SPARSE),),
        attention=attention(kv_s=1e-10, row_kv_s=1e-12, lone_kv_s=3e-10, prefill_token_s=1e-7),
    )
    here = step_s(model, decode_load(batch, context, query))
    for more in (
        decode_load(batch + 1, context, query),
        decode_load(batch, context + 100, query),
        decode_load(batch, context, query + 1),
        decode_load(batch, context, query, prefill_tokens=64),
    ):
        assert step_s(model, more) >= here * (1 - 1e-12)


def test_a_composition_names_the_source_of_every_term_once() -> None:
    other = Source(what="another", where="elsewhere")
    model = composition(
        layers=(LayerCost(1, (flat(0.0),)), LayerCost(2, (Curve((0, 1), (0, 1), other),), SPARSE))
    )
    assert model.sources() == (HERE, other)
    assert model.sparse == SPARSE
    assert composition().sparse is None
