"""Kinds of layers: what verification, splits and routing do to their time, and refusals."""

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.physics.experts import Routing, independent_routing
from capplan.physics.load import decode_load
from deployed import deployed
from published import NEEDED, fastest_s

pytestmark = NEEDED


def term(composition, what):
    (found,) = {one.what: one for one in composition.terms if one.what == what}.values()
    return found


def test_latent_attention_of_few_heads_verifies_for_little():
    few = term(deployed("deepseek-v3", split=(8, 8, 1)), "attention")
    times = [few.at(decode_load(64, 16384, query)) for query in (1, 4)]
    # 16 heads and 4 tokens are 64 rows, which the published kernel takes as long for.
    assert times[0] == pytest.approx(
        (1 - (16384 - 8192) / 8192) * 0
        + fastest_s("h200_sxm/mla/sglang/0.5.14/generation_mla",
                    num_heads=16, batch_size=64, step=16383, kv_cache_dtype="bfloat16")
    )  # fmt: skip
    assert times[1] / times[0] < 1.2


def test_latent_attention_of_all_heads_pays_for_every_token():
    every = term(deployed("deepseek-v3", split=(8, 1, 8)), "attention")
    times = [every.at(decode_load(8 * 16, 16384, query)) for query in (1, 4)]
    assert times[1] / times[0] == pytest.approx(4, rel=0.1)


def test_modules_that_were_timed_whole_agree_with_their_pieces():
    # TensorRT-LLM timed both; vLLM the module alone.
    pieces = deployed("deepseek-v3", engine="trtllm").parts_s(decode_load(64, 1024, 1))
    module_s = fastest_s(
        "h200_sxm/mla/trtllm/1.3.0rc20/mla_generation_module",
        num_heads=16, batch_size=64, step=1024, gemm_type="bfloat16", kv_cache_dtype="bfloat16",
    )  # fmt: skip
    small_s = 3 * 2e-6  # two norms, positions with the cache's entry
    assert pieces["attention"] / 61 + small_s == pytest.approx(module_s, rel=0.08)


def test_linear_attention_writes_its_state_after_every_token():
    state = term(deployed("qwen3.5-397b-a17b"), "state")
    times = [state.at(decode_load(256, 1024, query)) for query in (1, 2, 4)]
    assert times[0] == pytest.approx(
        fastest_s("h200_sxm/linear_attention/sglang/0.5.14/gdn", phase="generation",
                  num_k_heads=2, num_v_heads=8, batch_size=256,
                  kernel_source="fused_recurrent_gated_delta_rule_packed_decode"),
    )  # fmt: skip
    assert times[1] / times[0] == pytest.approx(1.5, rel=0.05)
    assert times[2] / times[0] == pytest.approx(2.5, rel=0.05)
    assert state.at(decode_load(256, 65536, 1)) == times[0]


def test_a_chosen_part_of_the_cache_is_read_by_every_drafted_token():
    module = term(deployed("glm-5", weights="fp8_block"), "attention with projections and indexer")
    four, verified = module.at(decode_load([64, 16], 8192, [1, 4]))
    assert verified == four
    assert module.at(decode_load(16, 4097, 1)) == pytest.approx(
        fastest_s("h200_sxm/sparse_attention/sglang/0.5.14/dsa_generation_module",
                  model="zai-org/GLM-5-FP8", num_heads=8, batch_size=16, step=4096,
                  gemm_type="fp8_block", kv_cache_dtype="bfloat16",
                  kernel_source="sglang_dsa_indexer_fa3"),
    )  # fmt: skip


class TestExperts:
    def test_fewer_distinct_experts_take_less_time(self):
        alike = Routing(128, 8, across=0.3, within=0.6)
        times = [
            term(deployed("qwen3-235b-a22b", routing=routing), "routed experts")
            for routing in (alike, independent_routing(128, 8))
        ]
        load = decode_load([1, 4, 16], 1024, 4)
        less, more = (one.at(load) for one in times)
        assert (less < more).all()

    def test_a_power_law_row_is_met_at_its_distinct_experts(self):
        # At 1024 tokens every expert is touched whatever the routing.
        layer = term(deployed("qwen3-235b-a22b", weights="fp8_block", split=(4, 4, 1)),
                     "routed experts")  # fmt: skip
        rows = [
            fastest_s("h200_sxm/moe/sglang/0.5.14/moe", moe_dtype="fp8_block", num_tokens=1024,
                      hidden_size=4096, inter_size=1536, topk=8, num_experts=128, moe_tp_size=4,
                      moe_ep_size=1, distribution=distribution)
            for distribution in ("power_law_1.01", "power_law_1.2")
        ]  # fmt: skip
        assert layer.at(decode_load(1024, 1024, 1)) == pytest.approx(np.mean(rows), rel=0.12)

    def test_a_layer_of_other_counts_is_lent_with_a_caveat(self):
        composition = deployed("qwen3-next-80b-a3b", split=(2, 2, 1))
        (caveat,) = [one for one in composition.caveats if one.about == "experts"]
        assert "512 experts with 10 a token were not timed" in caveat.text

    def test_without_routing_the_assumption_is_said(self):
        said = [one.about for one in deployed("qwen3-235b-a22b").caveats]
        given = deployed("qwen3-235b-a22b", routing=independent_routing(128, 8)).caveats
        assert "routing" in said
        assert "routing" not in [one.about for one in given]


class TestSplits:
    def test_copies_of_attention_serve_sequences_of_their_own(self):
        together = term(deployed("qwen3-235b-a22b", split=(4, 4, 4)), "attention")
        apart = deployed("qwen3-235b-a22b", split=(4, 1, 4))
        load = decode_load(64, 8192, 1)
        # A GPU reads all heads of a quarter of the sequences, or a quarter of the heads of all.
        assert term(apart, "attention").at(load) == pytest.approx(together.at(load), rel=0.15)
        assert apart.parts_s(load)["all_to_all"] > 0
        assert "all_reduce" not in apart.parts_s(load)

    def test_more_gpus_take_less_time(self):
        load = decode_load(64, 4096, 1)
        times = [
            deployed("qwen3-235b-a22b", split=(gpus, gpus, 1)).step_s(load) for gpus in (2, 4, 8)
        ]
        assert times == sorted(times, reverse=True)


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "other", "words"),
        [
            ("nemotron-h-56b", {}, "attention that is not composed, found mamba"),
            ("deepseek-v4-pro", {}, "found compressed"),
            ("llama-3.1-70b", {"weights": "int4"}, "no table of matrix products, found int4"),
            ("llama-3.1-70b", {"weights": "nvfp4"}, "no table of matrix products, found nvfp4"),
            ("llama-3.1-70b", {"split": (8, 3, 1)}, "must divide the replica's 8 GPUs"),
            ("llama-3.1-405b", {"split": (16, 16, 1)}, "several nodes are not composed"),
            ("glm-4.5", {}, "experts of which there is no table"),
            ("qwen3-next-80b-a3b", {"weights": "fp8_block"}, "do not hold a block of 128"),
        ],
    )
    def test_what_has_no_table_is_named(self, name, other, words):
        with pytest.raises(InputError) as refused:
            deployed(name, **other)
        assert any(words in str(complaint) for complaint in refused.value.complaints)

    def test_all_reasons_are_given_at_once(self):
        with pytest.raises(InputError) as refused:
            deployed("nemotron-3-nano-30b-a3b", weights="int4")
        assert len(refused.value.complaints) > 1


def test_falling_times_are_said_not_smoothed():
    # fp8 products on H200 take less at 113 rows than at 66, as published.
    said = [one.text for one in deployed("llama-3.1-70b", weights="fp8", split=(4, 4, 1)).caveats]
    assert any("fall as the batch grows" in text for text in said)


def test_four_bit_checkpoints_keep_latent_projections_wide():
    composition = deployed("deepseek-v3", gpu="b200-sxm", engine="trtllm", weights="nvfp4")
    assert "gemm_dtype=bfloat16" in term(composition, "query projection").sources[0].where
    assert "gemm_dtype=nvfp4" in term(composition, "output projection").sources[0].where
