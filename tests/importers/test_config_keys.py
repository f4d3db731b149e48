"""Configurations of known models, and what is wrong with others."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.importers.hugging_face.config import architecture
from capplan.importers.hugging_face.families import FAMILIES
from capplan.physics.cache import kv_bytes_per_token
from capplan.physics.parameters import count_parameters
from capplan.records.architecture import Architecture, Dense, Gqa, Mla, Moe

# The keys that decide a model's anatomy, as its maker's config.json states them.
EVERY_FILE = {
    "architectures": ["SomeModelForCausalLM"],
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}
LLAMA_70B = EVERY_FILE | {
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
    "num_key_value_heads": 8,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
}
MIXTRAL = EVERY_FILE | {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
QWEN3_30B = EVERY_FILE | {
    "model_type": "qwen3_moe",
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "mlp_only_layers": [],
    "moe_intermediate_size": 768,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
QWEN2_57B = EVERY_FILE | {
    "model_type": "qwen2_moe",
    "decoder_sparse_step": 1,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "moe_intermediate_size": 2560,
    "num_attention_heads": 28,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "shared_expert_intermediate_size": 20480,
    "sliding_window": 131072,
    "use_sliding_window": False,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}
DEEPSEEK_V3 = EVERY_FILE | {
    "model_type": "deepseek_v3",
    "attention_bias": False,
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "tie_word_embeddings": False,
    "v_head_dim": 128,
    "vocab_size": 129280,
}
# A dump of transformers 5 adds head_dim: the rotary part, not the size of a head.
DEEPSEEK_V2_LITE = {
    **DEEPSEEK_V3,
    "model_type": "deepseek_v2",
    "first_k_dense_replace": 1,
    "head_dim": 64,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 16,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "vocab_size": 102400,
}
KIMI_K25 = {
    "model_type": "kimi_k25",
    "architectures": ["KimiK25ForConditionalGeneration"],
    "tie_word_embeddings": False,
    "text_config": {
        **DEEPSEEK_V3,
        "model_type": "kimi_k2",
        "first_k_dense_replace": 1,
        "n_routed_experts": 384,
        "num_attention_heads": 64,
        "top_k": 50,
        "vocab_size": 163840,
    },
}
QWEN3_06B = EVERY_FILE | {
    "model_type": "qwen3",
    "head_dim": 128,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "tie_word_embeddings": True,
    "vocab_size": 151936,
}
ALL = [LLAMA_70B, MIXTRAL, QWEN3_30B, QWEN2_57B, DEEPSEEK_V3, DEEPSEEK_V2_LITE, KIMI_K25, QWEN3_06B]


def read(tree: Any) -> Architecture:
    return architecture(tree, "test", lambda path: f"config.json:{'.'.join(map(str, path))}")


def complaints(tree: Any) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        read(tree)
    return {complaint.key: str(complaint) for complaint in caught.value.complaints}


@pytest.mark.parametrize(
    ("tree", "total", "active"),
    [
        (LLAMA_70B, 70.6e9, 70.6e9),
        (MIXTRAL, 46.7e9, 12.9e9),
        (QWEN3_30B, 30.5e9, 3.3e9),
        (QWEN2_57B, 57.4e9, 14.2e9),
        (DEEPSEEK_V3, 671e9, 37e9),
        (DEEPSEEK_V2_LITE, 15.7e9, 2.66e9),
        (QWEN3_06B, 0.6e9, 0.6e9),
    ],
)
def test_totals_agree_with_what_the_makers_publish(
    tree: dict[str, Any], total: float, active: float
) -> None:
    counted = count_parameters(read(tree))
    assert counted.total == pytest.approx(total, rel=0.02)
    assert counted.active == pytest.approx(active, rel=0.02)


def test_kimi_stands_under_text_config_and_rounds_to_a_trillion() -> None:
    kimi = read(KIMI_K25)
    assert round(count_parameters(kimi).total / 1e12) == 1
    assert [kind.layers for kind in kimi.layer_kinds] == [1, 60]


def test_latent_attention_ignores_a_head_dim_that_a_dump_added() -> None:
    attention = read(DEEPSEEK_V2_LITE).layer_kinds[0].attention
    assert isinstance(attention, Mla)
    assert attention.query_rank is None
    assert attention.nope_head_size == 128
    assert kv_bytes_per_token(read(DEEPSEEK_V2_LITE), 2) == 27 * 576 * 2


def test_an_explicit_head_size_wins_over_hidden_by_heads() -> None:
    assert read(QWEN3_30B).layer_kinds[0].attention.model_dump()["head_size"] == 128
    assert read(LLAMA_70B).layer_kinds[0].attention.model_dump()["head_size"] == 128


def test_shared_experts_add_up_their_widths() -> None:
    def shared(tree: dict[str, Any]) -> int:
        feed_forward = read(tree).layer_kinds[-1].feed_forward
        assert isinstance(feed_forward, Moe)
        return feed_forward.shared_width

    assert shared(DEEPSEEK_V2_LITE) == 2 * 1408
    assert shared(QWEN2_57B) == 20480
    assert shared(QWEN3_30B) == 0


def test_biases_and_norms_follow_the_family() -> None:
    def attention(tree: dict[str, Any]) -> Gqa:
        found = read(tree).layer_kinds[0].attention
        assert isinstance(found, Gqa)
        return found

    assert attention(QWEN2_57B).projection_bias
    assert not attention(LLAMA_70B).projection_bias
    assert attention({**LLAMA_70B, "attention_bias": True}).projection_bias
    assert attention(QWEN3_06B).head_norm


@pytest.mark.parametrize(
    ("changes", "dense", "sparse"),
    [
        ({}, 3, 58),
        ({"first_k_dense_replace": 0}, 0, 61),
        ({"first_k_dense_replace": 61}, 61, 0),
        ({"moe_layer_freq": 2}, 32, 29),  # of 3..60 the even layers
        ({"moe_layer_freq": [0] * 10 + [1] * 51}, 10, 51),
    ],
)
def test_dense_and_sparse_layers_are_counted(
    changes: dict[str, Any], dense: int, sparse: int
) -> None:
    kinds = read({**DEEPSEEK_V3, **changes}).layer_kinds
    assert sum(kind.layers for kind in kinds if isinstance(kind.feed_forward, Dense)) == dense
    assert sum(kind.layers for kind in kinds if isinstance(kind.feed_forward, Moe)) == sparse


def test_qwen_names_its_dense_layers() -> None:
    kinds = read({**QWEN3_30B, "mlp_only_layers": [0, 5], "decoder_sparse_step": 2}).layer_kinds
    # Layers 1, 3, 5, ... are sparse, 5 excepted.
    assert [kind.layers for kind in kinds] == [25, 23]


@pytest.mark.parametrize("name", ["silu", "swish", None])
def test_the_families_own_activation_is_read(name: str | None) -> None:
    assert read({**LLAMA_70B, "hidden_act": name}) == read(LLAMA_70B)


def test_a_missing_number_of_layers_is_complained_of_alone() -> None:
    without = {key: value for key, value in DEEPSEEK_V3.items() if key != "num_hidden_layers"}
    assert set(complaints(without)) == {"num_hidden_layers"}


def test_a_missing_tie_is_no_tie_in_these_families() -> None:
    untied = {key: value for key, value in QWEN3_06B.items() if key != "tie_word_embeddings"}
    assert not read(untied).tied_embeddings


@pytest.mark.parametrize(
    ("tree", "key", "words"),
    [
        ({**LLAMA_70B, "model_type": "rwkv7"}, "model_type", "Known: deepseek_ref, deepseek_v2"),
        ({**LLAMA_70B, "model_type": ["llama"]}, "model_type", "not a model type"),
        ({"hidden_size": 3}, "model_type", "the key is missing"),
        ({**QWEN3_06B, "use_sliding_window": True}, "sliding_window", "the key is missing"),
        ({**LLAMA_70B, "torch_dtype": "int3"}, "torch_dtype", "needs one of bfloat16"),
        (
            {**QWEN3_06B, "layer_types": ["linear_attention"] * 28},
            "layer_types",
            "'linear_attention' is not known to capplan; known: full_attention",
        ),
        ({**DEEPSEEK_V3, "index_topk": 2048}, "index_topk", "may change memory"),
        (
            {**DEEPSEEK_V3, "routed_expert_hidden_size": 9},
            "routed_expert_hidden_size",
            "may change",
        ),
        ({**LLAMA_70B, "num_local_experts": 16}, "num_local_experts", "may change"),
        ({**LLAMA_70B, "hidden_size": True}, "hidden_size", "whole number"),
        ({**LLAMA_70B, "hidden_size": 8192.0}, "hidden_size", "whole number"),
        ({**LLAMA_70B, "vocab_size": -1}, "vocab_size", "whole number"),
        ({**LLAMA_70B, "vocab_size": 10**5000}, "vocab_size", "a number of"),
        ({**LLAMA_70B, "num_hidden_layers": 10**7}, "num_hidden_layers", "from 1 to 10000"),
        ({**LLAMA_70B, "num_key_value_heads": 7}, "num_key_value_heads", "must divide"),
        ({**MIXTRAL, "num_experts_per_tok": 9}, "num_experts_per_tok", "must not exceed"),
        ({**DEEPSEEK_V3, "moe_layer_freq": [1, 0]}, "moe_layer_freq", "each of the 61 layers"),
        (
            {**DEEPSEEK_V3, "first_k_dense_replace": 62},
            "first_k_dense_replace",
            "must not exceed num_hidden_layers (61)",
        ),
        ({**QWEN3_30B, "mlp_only_layers": [48]}, "mlp_only_layers", "from 0 to 47"),
        ({**LLAMA_70B, "hidden_act": "relu2"}, "hidden_act", "needs one of silu"),
        ({**MIXTRAL, "hidden_act": ["silu"]}, "hidden_act", "needs one of silu"),
        ({**DEEPSEEK_V3, "attention_bias": True}, "attention_bias", "biases"),
        (
            {**DEEPSEEK_V3, "first_k_dense_replace": 0, "moe_layer_freq": [-1]},
            "moe_layer_freq",
            "a value for each of the 61 layers",
        ),
        ({"model_type": "kimi_k25"}, "text_config", "needs a mapping"),
        ({"model_type": "kimi_k25", "text_config": {}}, "text_config.vocab_size", "missing"),
        ([], "", "needs a mapping"),
        (None, "", "needs a mapping"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(tree: Any, key: str, words: str) -> None:
    assert words in complaints(tree)[key]


def test_all_that_is_wrong_is_said_at_once_with_its_place() -> None:
    wrong = {**DEEPSEEK_V3, "hidden_size": "7168", "kv_lora_rank": None}
    del wrong["q_lora_rank"]
    found = complaints({**KIMI_K25, "text_config": wrong})
    assert set(found) == {
        f"text_config.{key}" for key in ("hidden_size", "kv_lora_rank", "q_lora_rank")
    }
    assert "config.json:text_config.hidden_size" in found["text_config.hidden_size"]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-2, 2), max_size=4),
    st.just({}),
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_mutated_configuration_is_read_or_refused_but_never_fails(data: st.DataObject) -> None:
    tree = copy.deepcopy(data.draw(st.sampled_from(ALL)))
    inner = tree.get("text_config", tree)
    for key in data.draw(st.lists(st.sampled_from(sorted(inner)), max_size=4, unique=True)):
        if data.draw(st.booleans()):
            inner[key] = data.draw(VALUES)
        else:
            del inner[key]
    try:
        found = read(tree)
    except InputError:
        return
    assert count_parameters(found).total > 0
    assert Architecture.model_validate_json(found.model_dump_json()) == found


@given(st.recursive(VALUES, lambda inner: st.dictionaries(st.text(max_size=9), inner)))
def test_anything_else_is_refused(tree: Any) -> None:
    with pytest.raises(InputError):
        read(tree)


@pytest.mark.parametrize("model_type", sorted(FAMILIES))
def test_a_family_without_any_other_key_lists_what_it_needs(model_type: str) -> None:
    found = complaints(json.loads(f'{{"model_type": "{model_type}"}}'))
    by_block = {"nemotron-nas": "block_configs", "nemotron_h": "layers_block_type"}
    layers = {by_block[model_type]} if model_type in by_block else {"num_hidden_layers"}
    heads = {"num_attention_heads"} if model_type != "nemotron-nas" else set()
    assert {"hidden_size", "vocab_size"} | layers | heads <= set(found)
