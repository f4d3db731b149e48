"""What one GPU holds, against engines' own logs, sums by hand and rules of engines."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.files.reader import read
from capplan.physics.cache import kv_bytes_per_token
from capplan.physics.parameters import count_parameters
from capplan.physics.precision import at_precision
from capplan.physics.sharding import WHOLE, Split, broken_rules, on_gpu, parameters_on_gpu
from capplan.physics.stored_bytes import stored_bytes
from capplan.records.architecture import Architecture

MODELS = Path(__file__).parents[2] / "models"
GIB = 2**30


def model(name: str) -> Architecture:
    return read(MODELS / f"{name}.yaml", Architecture)


def rules(name: str, split: Split) -> list[str]:
    return [f"{one.option} {one.rule}" for one in broken_rules(model(name).layer_kinds, split)]


@pytest.mark.parametrize(
    ("name", "precision", "tensor", "logged_gib"),
    [
        # vLLM 0.8.5, each of four ranks: "Model loading took 14.2474 GiB",
        # https://github.com/vllm-project/vllm/issues/17469
        ("qwen3-30b-a3b", "bf16", 4, 14.2474),
        # Llama-3.1-70B w8a8 on one GPU: "Loading model weights took 67.7229 GB", which are GiB,
        # https://github.com/vllm-project/vllm/pull/12569
        ("llama-3.1-70b", "int8", 1, 67.7229),
    ],
)
def test_a_gpu_holds_what_vllm_logs(name, precision, tensor, logged_gib):
    counted = parameters_on_gpu(model(name), Split(tensor, tensor))
    size = sum(stored_bytes(counted, at_precision(precision)).values())
    assert size / GIB == pytest.approx(logged_gib, rel=0.002)


@pytest.mark.parametrize("file", sorted(MODELS.glob("*.yaml")), ids=lambda file: file.stem)
def test_one_gpu_holds_all(file):
    whole = read(file, Architecture)
    assert parameters_on_gpu(whole, WHOLE) == count_parameters(whole)
    assert on_gpu(whole.layer_kinds, WHOLE) == whole.layer_kinds


@pytest.mark.parametrize("file", sorted(MODELS.glob("*.yaml")), ids=lambda file: file.stem)
@pytest.mark.parametrize("split", [Split(8, 8), Split(8, 8, 8), Split(8, 1, 8), Split(4, 2, 4)])
def test_gpus_hold_all_between_them_and_copies_are_no_smaller(file, split):
    whole = read(file, Architecture)
    if broken_rules(whole.layer_kinds, split):
        pytest.skip("cannot be split so")
    one, all_of_it = parameters_on_gpu(whole, split), count_parameters(whole)
    assert split.gpus * one.routed_experts == pytest.approx(all_of_it.routed_experts, rel=1e-3)
    assert split.tensor * one.attention >= all_of_it.attention
    assert split.tensor * one.dense >= all_of_it.dense
    assert one.attention <= all_of_it.attention
    assert one.router == all_of_it.router


def test_latent_attention_splits_by_heads_and_keeps_its_latent_parts_whole():
    one = parameters_on_gpu(model("deepseek-v3"), Split(8, 8))
    by_heads = 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168
    assert one.attention == 61 * (7168 * 1536 + 7168 * 576 + by_heads // 8)


def test_experts_are_sliced_or_dealt_out_whole():
    sliced, dealt = (
        on_gpu(model("deepseek-v3").layer_kinds, split)[1].feed_forward
        for split in (Split(8, 8), Split(8, 8, 8))
    )
    assert (sliced.experts, sliced.expert_width) == (256, 256)
    assert (dealt.experts, dealt.expert_width) == (32, 2048)


@given(st.sampled_from([1, 2, 4, 8, 16, 32, 64]))
def test_grouped_keys_are_split_until_there_are_too_few_of_them(tensor):
    llama = model("llama-3.1-70b")  # 64 heads over 8 keys, 327,680 bytes a token
    share = llama.model_copy(update={"layer_kinds": on_gpu(llama.layer_kinds, Split(64, tensor))})
    assert kv_bytes_per_token(share, 2) == 327_680 / min(tensor, 8)


def test_a_latent_cache_stands_whole_on_every_gpu():
    deepseek = model("deepseek-v3")
    kinds = on_gpu(deepseek.layer_kinds, Split(8, 8))
    assert kv_bytes_per_token(deepseek.model_copy(update={"layer_kinds": kinds}), 2) == 70_272


@pytest.mark.parametrize(
    ("name", "split", "rule"),
    [
        ("llama-3.1-70b", Split(12, 12), "tp must divide the 64 attention heads"),
        ("llama-3.1-70b", Split(8, 3), "tp must divide the replica's 8 GPUs"),
        ("llama-3.1-70b", Split(8, 8, 8), "ep needs routed experts, and the model has none"),
        ("qwen3-30b-a3b", Split(256, 1, 256), "ep must not be larger than the 128 experts"),
        ("qwen3-30b-a3b", Split(96, 32, 96), "ep must divide the 128 experts"),
        (
            "mixtral-8x7b",
            Split(12, 4),
            "tp leaves 12 GPUs to each expert, which must divide its width of 14336",
        ),
        ("qwen3-next-80b-a3b", Split(32, 32), "tp must divide the 16 attention heads"),
        ("qwen3-next-80b-a3b", Split(32, 32), "tp must divide the 16 key heads"),
    ],
)
def test_what_cannot_be_split_says_why(name, split, rule):
    assert rule in rules(name, split)


def test_key_heads_may_be_copied_but_not_torn():
    assert rules("qwen3-30b-a3b", Split(8, 8)) == []  # four key-value heads, each on two GPUs
    layer = model("llama-3.1-70b").layer_kinds[0]
    attention = layer.attention.model_copy(update={"heads": 48})
    torn = layer.model_copy(update={"attention": attention})
    (broken,) = broken_rules((torn,), Split(12, 12))[:1]
    assert "8 key-value heads, or be a multiple of them to copy them" in broken.rule
