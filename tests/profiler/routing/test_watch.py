"""Choices are read as the layers make them, and their statistics are those of the formula."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_moe  # noqa: E402
from capplan.errors import InputError  # noqa: E402
from capplan.profiler.routing.result import LAGS, routing, thirds  # noqa: E402
from capplan.profiler.routing.watch import choices, experts_of  # noqa: E402
from capplan.records.caveat import Origin  # noqa: E402
from capplan.report.routing import report  # noqa: E402

pytestmark = pytest.mark.torch

SHAPE = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": None,
}
DEEPSEEK = {
    "moe_intermediate_size": 16,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_group": 4,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
FAMILIES = {
    "mixtral": lambda: transformers.MixtralForCausalLM(
        transformers.MixtralConfig(**SHAPE, num_local_experts=8, num_experts_per_tok=2)
    ),
    "gpt-oss": lambda: transformers.GptOssForCausalLM(
        transformers.GptOssConfig(**SHAPE, head_dim=8, num_local_experts=8, num_experts_per_tok=2)
    ),
    "deepseek-v3": lambda: transformers.DeepseekV3ForCausalLM(
        transformers.DeepseekV3Config(**(SHAPE | {"num_key_value_heads": 4}), **DEEPSEEK)
    ),
}


def texts(tokens: int, count: int, vocabulary: int) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [rng.integers(vocabulary, size=tokens).tolist() for _ in range(count)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_shows_two_different_experts_a_token(family: str) -> None:
    torch.manual_seed(0)
    model = FAMILIES[family]().eval()
    (text,) = texts(20, 1, 100)
    found = choices(model, text, first=5)
    assert found.shape == (15, 2 if family == "deepseek-v3" else 3, 2)
    assert experts_of(model) == 8
    assert (found[..., 0] != found[..., 1]).all()
    assert found.min() >= 0
    assert found.max() < 8
    if family == "deepseek-v3":  # one group of two experts: choices that no top-k of scores makes
        assert (found[..., 0] // 2 == found[..., 1] // 2).all()


def test_a_dense_model_has_no_choices() -> None:
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE))
    with pytest.raises(InputError, match="num_experts"):
        experts_of(model)
    with pytest.raises(InputError, match="no routed experts"):
        choices(model, [1, 2, 3])


def test_tokens_that_choose_alone_touch_what_independence_says() -> None:
    model = tiny_moe.independent()
    read = [choices(model, text) for text in texts(150, 16, 2000)]
    found = routing({"random": read}, 64, seed=0, origin=Origin(kind="measured"))
    for part in found.workloads["random"].layer_groups.values():
        assert part.across == pytest.approx(2 / 64, rel=0.2)
        assert part.overlap == pytest.approx([2 / 64] * LAGS, abs=0.012)
        for row in part.distinct.rows:
            exact = 64 * (1 - (1 - 2 / 64) ** (row.batch * row.query_tokens))
            assert row.distinct_experts == pytest.approx(exact, rel=0.04), row


def test_with_usual_weights_neighbours_choose_alike_and_the_formula_follows() -> None:
    torch.manual_seed(0)
    model = transformers.Qwen3MoeForCausalLM(
        tiny_moe.config(2000, hidden_size=128, num_experts=64, initializer_range=0.02)
    ).eval()
    read = [choices(model, text) for text in texts(150, 16, 2000)]
    found = routing({"random": read}, 64, seed=0, origin=Origin(kind="measured"))
    late = found.workloads["random"].layer_groups["late"]
    counted = {(r.batch, r.query_tokens): r.distinct_experts for r in late.distinct.rows}
    assert counted[1, 16] < 0.6 * 64 * (1 - (1 - 2 / 64) ** 16)
    shown = {row[0]: row[-1] for row in report(found).tables[1].rows}
    for query in (2, 4, 8, 16):
        measured, formula = map(float, shown[f"1 x {query}"].split(" / "))
        assert formula == pytest.approx(measured, rel=0.1)


def test_layers_fall_into_thirds() -> None:
    assert thirds(7) == {"early": [0, 1, 2], "middle": [3, 4], "late": [5, 6]}
    assert thirds(1) == {"early": [0]}
