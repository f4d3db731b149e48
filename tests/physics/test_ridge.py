"""Ridges, reads and messages against sums by hand and published intensities."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.files.reader import read
from capplan.physics.cache_reads import cache_read
from capplan.physics.messages import Sent, messages
from capplan.physics.ridge import PerSequence, Weights, ridge_batch
from capplan.physics.sharding import Split, on_gpu
from capplan.records.architecture import Architecture

MODELS = Path(__file__).parents[2] / "models"
BANDWIDTH, BF16, FP8 = 4.8e12, 989e12, 1978e12


def model(name: str) -> Architecture:
    return read(MODELS / f"{name}.yaml", Architecture)


def matrix(parameters: float, bits: float, rate: float, k: int = 1, experts: int = 1) -> Weights:
    return Weights(parameters * bits / 8, 2 * parameters * k / experts, rate, experts, k)


@pytest.mark.parametrize(
    ("bits", "rate", "tokens"), [(16, BF16, 206), (8, FP8, 206), (4, BF16, 52)]
)
def test_a_matrix_turns_at_its_width_whatever_its_size(bits, rate, tokens):
    for parameters in (1e6, 1e11):
        found = ridge_batch([matrix(parameters, bits, rate)], BANDWIDTH)
        assert found == pytest.approx(tokens, abs=0.5)


def test_verifying_reaches_the_ridge_with_fewer_sequences():
    one = [matrix(1e9, 16, BF16)]
    assert ridge_batch(one, BANDWIDTH, 4) == pytest.approx(ridge_batch(one, BANDWIDTH) / 4)


@given(k=st.integers(1, 16), experts=st.integers(32, 512))
def test_experts_turn_when_each_meets_the_tokens_of_a_matrix(k, experts):
    # By then a step touches all of them, so it is E/k times later.
    found = ridge_batch([matrix(1e9, 16, BF16, k, experts)], BANDWIDTH)
    assert found == pytest.approx(BF16 / BANDWIDTH * experts / k, rel=0.01)


def test_a_cache_that_takes_longer_to_read_than_a_token_to_compute_is_never_overtaken():
    weights = [matrix(1e9, 16, BF16)]
    compute_s = 2e9 / BF16
    under, over = (PerSequence(share * compute_s * BANDWIDTH) for share in (0.9, 1.1))
    assert ridge_batch(weights, BANDWIDTH, 1, under) == pytest.approx(10 * 206, rel=0.01)
    assert ridge_batch(weights, BANDWIDTH, 1, over) is None


@pytest.mark.parametrize("tensor", [1, 8])
def test_latent_attention_has_the_intensity_of_its_rows(tensor):
    # 1152 bytes and 2 x heads x 1088 FLOP a cached token: about 1.9 x heads FLOP a byte.
    one = cache_read(on_gpu(model("deepseek-v3").layer_kinds, Split(8, tensor)), 1000, 2)
    assert one.read_bytes == 61 * 1152 * 1000
    assert one.flop == 61 * 2 * (128 // tensor) * 1088 * 1000


def test_grouped_queries_compute_as_often_as_they_share_a_key():
    one = cache_read(model("llama-3.1-70b").layer_kinds, 1000, 2)
    assert one.read_bytes == 327_680 * 1000
    assert one.flop / one.read_bytes == 64 / 8


def test_windows_and_chosen_tokens_end_the_reading():
    oss = model("gpt-oss-120b").layer_kinds
    per_token = 2 * 8 * 64 * 2
    assert cache_read(oss, 10_000, 2).read_bytes == 18 * per_token * (128 + 10_000)
    sparse = model("deepseek-v3.2").layer_kinds
    index = 61 * 128 * 2
    assert cache_read(sparse, 100_000, 2).read_bytes == 61 * 1152 * 2048 + index * 100_000


def test_states_are_read_and_written():
    none, some = (cache_read(model("qwen3-next-80b-a3b").layer_kinds, c, 2) for c in (0, 1000))
    assert none.read_bytes > 0
    assert some.read_bytes - none.read_bytes == 12 * 2 * 2 * 256 * 2 * 1000


def test_tensor_parallelism_sums_twice_a_layer():
    llama = model("llama-3.1-70b")
    found = messages(llama.layer_kinds[0], llama.hidden_size, Split(8, 8))
    assert found == (Sent("all-reduce", 2, 2 * 8192 * 2),)
    assert messages(llama.layer_kinds[0], llama.hidden_size, Split(1, 1)) == ()


def test_whole_experts_beside_whole_attention_still_sum():
    moe = model("deepseek-v3").layer_kinds[1]
    assert messages(moe, 7168, Split(8, 8, 8)) == messages(moe, 7168, Split(8, 8))


def test_copies_of_attention_send_tokens_to_the_experts_and_back():
    moe = model("deepseek-v3").layer_kinds[1]
    assert messages(moe, 7168, Split(8, 1, 8)) == (Sent("all-to-all", 2, 2 * 8 * 7168 * 2),)
    assert messages(moe, 7168, Split(4, 2, 4)) == (
        Sent("all-reduce", 1, 7168 * 2),
        Sent("all-to-all", 2, 2 * 4 * 7168 * 2),
    )
    assert messages(moe, 7168, Split(8, 1)) == (Sent("gather and scatter", 2, 2 * 7168 * 2),)
