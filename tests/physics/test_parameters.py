"""Counts against what the models' makers publish, and against sums done by hand."""

import pytest

from capplan.physics.cache import kv_bytes_per_token
from capplan.physics.parameters import count_parameters, weights_bytes
from capplan.records.architecture import Architecture, Dense, Gqa, LayerKind, Mla, Moe
from capplan.records.caveat import Source

BF16 = 2
SOURCE = Source(what="all", where="this test")


def mla(heads: int) -> Mla:
    return Mla(
        kind="mla",
        heads=heads,
        query_rank=1536,
        kv_rank=512,
        nope_head_size=128,
        rope_head_size=64,
        value_head_size=128,
    )


def gqa(heads: int, kv_heads: int, head_size: int = 128, **flags: bool) -> Gqa:
    return Gqa(kind="gqa", heads=heads, kv_heads=kv_heads, head_size=head_size, **flags)


def model(
    hidden: int, vocabulary: int, *kinds: tuple[int, Gqa | Mla, Dense | Moe], tied: bool = False
) -> Architecture:
    return Architecture(
        version=1,
        name="test",
        hidden_size=hidden,
        vocabulary=vocabulary,
        tied_embeddings=tied,
        layer_kinds=tuple(
            LayerKind(layers=layers, attention=attention, feed_forward=feed_forward)
            for layers, attention, feed_forward in kinds
        ),
        source=SOURCE,
    )


def moe(experts: int, chosen: int, width: int, shared: int = 0, bias: bool = False) -> Moe:
    return Moe(
        kind="moe",
        experts=experts,
        experts_per_token=chosen,
        expert_width=width,
        shared_width=shared,
        router_bias=bias,
    )


def dense(width: int) -> Dense:
    return Dense(kind="dense", width=width)


DEEPSEEK_V3 = model(
    7168,
    129280,
    (3, mla(128), dense(18432)),
    (58, mla(128), moe(256, 8, 2048, shared=2048, bias=True)),
)
KIMI_K2 = model(
    7168,
    163840,
    (1, mla(64), dense(18432)),
    (60, mla(64), moe(384, 8, 2048, shared=2048, bias=True)),
)
MIXTRAL = model(4096, 32000, (32, gqa(32, 8), moe(8, 2, 14336)))
LLAMA_70B = model(8192, 128256, (80, gqa(64, 8), dense(28672)))
QWEN3_30B = model(2048, 151936, (48, gqa(32, 4, head_norm=True), moe(128, 8, 768)))
QWEN25_32B = model(5120, 152064, (64, gqa(40, 8, projection_bias=True), dense(27648)))


@pytest.mark.parametrize(
    ("architecture", "total", "active"),
    [
        (DEEPSEEK_V3, 671e9, 37e9),
        (MIXTRAL, 46.7e9, 12.9e9),
        (LLAMA_70B, 70.6e9, 70.6e9),
        (QWEN3_30B, 30.5e9, 3.3e9),
        (QWEN25_32B, 32.5e9, 32.5e9),
    ],
)
def test_totals_agree_with_what_the_makers_publish(
    architecture: Architecture, total: float, active: float
) -> None:
    counted = count_parameters(architecture)
    assert counted.total == pytest.approx(total, rel=0.02)
    assert counted.active == pytest.approx(active, rel=0.02)


def test_kimi_k2_rounds_to_a_trillion_and_to_32_billion_without_its_embedding() -> None:
    counted = count_parameters(KIMI_K2)
    assert round(counted.total / 1e12) == 1
    assert round((counted.active - counted.embedding) / 1e9) == 32


def test_the_exact_count_of_a_checkpoint() -> None:
    # As huggingface.co states it for the safetensors files of meta-llama/Llama-3.1-70B.
    assert count_parameters(LLAMA_70B).total == 70_553_706_496


@pytest.mark.parametrize(
    ("architecture", "kv_bytes"),
    [(DEEPSEEK_V3, 70_272), (QWEN3_30B, 98_304), (LLAMA_70B, 327_680)],
)
def test_cache_per_token_agrees_with_the_known_sizes(
    architecture: Architecture, kv_bytes: int
) -> None:
    assert kv_bytes_per_token(architecture, BF16) == kv_bytes


def test_a_model_small_enough_to_add_up_by_hand() -> None:
    tiny = model(4, 10, (2, gqa(2, 1, 3, head_norm=True), moe(5, 2, 7, shared=6, bias=True)))
    counted = count_parameters(tiny)
    assert counted.embedding == counted.head == 40
    assert counted.attention == 2 * (4 * 6 + 2 * 4 * 3 + 6 * 4)
    assert counted.routed_experts == 2 * 5 * 3 * 4 * 7
    assert counted.routed_experts_active == 2 * 2 * 3 * 4 * 7
    assert counted.shared_experts == 2 * 3 * 4 * 6
    assert counted.router == 2 * (5 * 4 + 5)
    assert counted.norms == 2 * (4 + 4 + 3 + 3) + 4
    assert counted.dense == 0


def test_a_tied_head_counts_once() -> None:
    kinds = (2, gqa(2, 1, 3), dense(7))
    apart, tied = (count_parameters(model(4, 10, kinds, tied=tied)) for tied in (False, True))
    assert apart.total - tied.total == 40


def test_four_bit_experts_shrink_only_the_routed_ones() -> None:
    counted = count_parameters(KIMI_K2)
    all_bf16 = weights_bytes(counted, 16, 16)
    assert all_bf16 == 2 * counted.total
    # 4 bits and a 16-bit scale for 32 weights, as in the checkpoint of Kimi-K2-Thinking, 594 GB.
    assert weights_bytes(counted, 4.5, 16) == pytest.approx(594e9, rel=0.02)
    assert all_bf16 - weights_bytes(counted, 4.5, 16) == counted.routed_experts * 11.5 / 8
