"""Keys that nobody has read: which are refused, and which pass."""

from typing import Any

import pytest

import real_configs as real
from capplan.errors import InputError
from capplan.importers.hugging_face.config import architecture

FLAT = "Qwen__Qwen3-30B-A3B"
NESTED = "moonshotai__Kimi-K2.5"


def complaints(tree: Any) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        architecture(tree, "test", real.where)
    return {complaint.key: str(complaint) for complaint in caught.value.complaints}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention_type", "ring"),
        ("attn_mode", "sparse"),
        ("routed_expert_hidden_size", 1024),
        ("expert_latent_dim", 512),
        ("moe_latent_size", 512),
        ("linear_attn_config", {"num_heads": 8}),
        ("ssm_state_size", 128),
        ("layers_block_type", ["mamba"] * 48),
        ("cross_layer_kv_sharing", True),
        ("kv_shared_layers", 4),
        ("num_memory_tokens", 16),
        ("memory_slots", 64),
        ("index_topk", 2048),
        ("compress_ratios", [4] * 48),
        ("ffn_dim_multiplier", 1.3),
        ("mlp_expansion_factor", 4.0),
        ("experts_per_token", 16),
        ("numExperts", 64),
        ("lora_rank", 16),
        ("novel_thing", {"hidden_size": 7}),
        ("novel_thing", {"a": {"b": {"window": 7}}}),
    ],
)
def test_what_may_change_memory_or_compute_is_refused_by_name(key: str, value: Any) -> None:
    tree = real.ENTRIES[FLAT]["config"]
    found = complaints(tree | {key: value})
    assert set(found) == {key}
    assert "may change memory or compute" in found[key]
    nested = real.ENTRIES[NESTED]["config"]
    inner = nested["text_config"] | {key: value}
    assert set(complaints(nested | {"text_config": inner})) == {f"text_config.{key}"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("new_token_id", 7),
        ("thinking_token_ids", [1, 2]),
        ("router_z_loss_coef", 0.001),
        ("attention_dropout_rate", 0.1),
        ("embedding_multiplier", 12.0),
        ("attention_logit_scale", 0.5),
        ("weight_init_std", 0.02),
        ("rope_scaling", {"factor": 4.0, "type": "yarn", "num_heads": 3}),
        ("vision_config", {"num_hidden_layers": 27, "hidden_size": 1152}),
        ("author", "somebody"),
        ("_commit_hash", "0123"),
        ("moe_latent_size", None),
        ("use_linear_attention", False),
        ("num_kv_shared_layers", 0),
        ("extra_layers", []),
        ("notes", {"who": "me"}),
    ],
)
def test_what_changes_neither_passes(key: str, value: Any) -> None:
    tree = real.ENTRIES[FLAT]["config"]
    assert architecture(tree | {key: value}, FLAT, real.where) == real.read(FLAT)


def test_a_new_kind_of_layer_is_refused_with_those_that_are_known() -> None:
    tree = real.ENTRIES["Qwen__Qwen3.5-27B"]["config"]
    types = ["rwkv_attention", *tree["text_config"]["layer_types"][1:]]
    found = complaints(tree | {"text_config": tree["text_config"] | {"layer_types": types}})
    assert "rwkv_attention" in found["text_config.layer_types"]
    assert "known: full_attention, linear_attention" in found["text_config.layer_types"]


def test_a_decoy_is_not_taken_for_experts() -> None:
    dense = real.read("nvidia__Gemma-4-31B-IT-NVFP4")
    assert {kind.feed_forward.kind for kind in dense.layer_kinds} == {"dense"}
    kimi = real.ENTRIES[NESTED]["config"]
    sampled = kimi["text_config"] | {"top_k": 50}
    assert architecture(kimi | {"text_config": sampled}, NESTED, real.where) == real.read(NESTED)


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ({"quant_method": "hqq", "bits": 4}, "quantization_config.quant_method"),
        ({"quant_method": "modelopt"}, "quantization_config.quant_algo"),
        ({"quant_method": "modelopt", "quant_algo": "W2A2"}, "quantization_config.quant_algo"),
        (
            {"quant_method": "fp8", "weight_block_size": [0, 1]},
            "quantization_config.weight_block_size",
        ),
        ({"quant_method": "compressed-tensors"}, "quantization_config.config_groups"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {}}}},
            "quantization_config.config_groups",
        ),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["re:(a+)+$"]},
            "quantization_config.modules_to_not_convert",
        ),
        (
            {"quant_algo": "MIXED_PRECISION", "quantized_layers": {"lm_head": {"quant_algo": "X"}}},
            "quantization_config.quantized_layers",
        ),
        ([], "quantization_config"),
    ],
)
def test_a_way_of_narrowing_that_is_not_known_is_refused(method: Any, key: str) -> None:
    tree = real.ENTRIES[FLAT]["config"] | {"quantization_config": method}
    assert key in complaints(tree)


def test_gptq_and_awq_carry_scales_and_zeros() -> None:
    tree = real.ENTRIES[FLAT]["config"]
    scheme = {"quant_method": "awq", "bits": 4, "group_size": 128}
    stored = architecture(tree | {"quantization_config": scheme}, FLAT, real.where).stored
    assert stored is not None
    assert stored.routed_experts == pytest.approx(4 + 20 / 128, abs=1e-4)
    assert stored.embedding == stored.head == 16
