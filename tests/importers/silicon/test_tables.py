"""Operator tables: against rows read by hand, and what is said where they are missing."""

import sys

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.importers.silicon import gpus, silicon
from capplan.importers.silicon.package import systems
from published import NEEDED, fastest_s


def of_engine(operator, file, /, **wanted):
    """One row through the reader, and where it should stand."""
    gpu, _, engine, _, _ = file.split("/")
    table = silicon(gpu.replace("_", "-"), engine).find(operator, **wanted)
    return float(table["latency_s"].min()), fastest_s(file, **wanted)


ROWS = [
    # operator, file, columns; the latency beside each was read off the file by hand, in ms
    (
        "gemm",
        "h200_sxm/gemm/vllm/0.24.0/gemm",
        {"gemm_dtype": "bfloat16", "m": 64, "n": 10240, "k": 8192},
        0.04250133368704054,
    ),
    (
        "generation_attention",
        "h200_sxm/attention/vllm/0.24.0/generation_attention",
        {
            "num_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "window_size": 0,
            "kv_cache_dtype": "bfloat16", "batch_size": 32, "step": 4095,
        },
        0.046581332882245384,
    ),
    (
        "context_attention",
        "h200_sxm/attention/vllm/0.24.0/context_attention",
        {
            "num_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "window_size": 0,
            "kv_cache_dtype": "bfloat16", "batch_size": 1, "isl": 2048,
        },
        0.04673600196838379,
    ),
    (
        "custom_allreduce",
        "h200_sxm/comm/vllm/0.24.0/custom_allreduce",
        {"num_gpus": 4, "message_size": 262144},
        0.0104803204536438,
    ),
    (
        "generation_mla",
        "h200_sxm/mla/sglang/0.5.14/generation_mla",
        {"num_heads": 16, "batch_size": 32, "step": 4095, "kv_cache_dtype": "bfloat16"},
        0.054790401458740236,
    ),
    (
        "gdn",
        "h200_sxm/linear_attention/sglang/0.5.14/gdn",
        {
            "num_k_heads": 2, "num_v_heads": 8, "phase": "generation", "batch_size": 64,
            "kernel_source": "causal_conv1d_update",
        },
        0.0021503999829292296,
    ),
    (
        "moe",
        "h200_sxm/moe/sglang/0.5.14/moe",
        {
            "moe_dtype": "fp8_block", "num_tokens": 64, "hidden_size": 4096, "inter_size": 1536,
            "topk": 8, "num_experts": 128, "moe_tp_size": 4, "moe_ep_size": 1,
            "distribution": "power_law_1.2",
        },
        0.17378879547119142,
    ),
    (
        "scale_matrix",
        "h200_sxm/quantize/trtllm/1.3.0rc20/scale_matrix",
        {"m": 64, "k": 8192},
        0.0016672000288963317,
    ),
    (
        "dsa_generation_module",
        "h200_sxm/sparse_attention/sglang/0.5.14/dsa_generation_module",
        {
            "model": "zai-org/GLM-5-FP8", "num_heads": 8, "batch_size": 16, "step": 4096,
            "kv_cache_dtype": "bfloat16", "gemm_type": "fp8_block",
        },
        0.1009,
    ),
]  # fmt: skip


class TestInstalled:
    pytestmark = NEEDED

    @pytest.mark.parametrize(("operator", "file", "wanted", "latency_ms"), ROWS)
    def test_a_row_is_read_as_it_stands(self, operator, file, wanted, latency_ms):
        read_s, stands_s = of_engine(operator, file, **wanted)
        assert read_s == pytest.approx(latency_ms * 1e-3)
        assert stands_s == pytest.approx(latency_ms * 1e-3)

    def test_the_newest_version_counts_where_it_has_the_row(self):
        tables = silicon("h200-sxm", "vllm").read("vllm", "moe")
        assert [table.version for table in tables] == ["0.24.0", "0.19.0"]
        old = silicon("h200-sxm", "vllm").find("moe", kernel_source="vllm_fused_moe")
        assert old.version == "0.19.0"
        assert "0.24.0" not in old.source.where

    def test_release_candidates_are_ordered_by_their_number(self):
        tables = silicon("h200-sxm", "trtllm").read("trtllm", "moe")
        assert [table.version for table in tables] == ["1.3.0rc23", "1.3.0rc20", "1.3.0rc10"]

    def test_rows_that_no_version_holds_are_none(self):
        assert silicon("h200-sxm", "vllm").find("gemm", gemm_dtype="int3") is None
        assert silicon("h200-sxm", "vllm").find("gemm", no_such_column=1) is None
        assert silicon("h200-sxm", "vllm").find("no_such_operator") is None

    def test_labels_are_those_of_the_gpu(self):
        limits = silicon("h200-sxm", "vllm").limits
        assert limits.bandwidth_bytes_per_s == 4.8e12
        assert limits.gpus_per_node == 8

    def test_an_unknown_gpu_and_engine_are_refused_at_once(self):
        with pytest.raises(InputError) as refused:
            silicon("h300-sxm", "llama.cpp")
        keys = [complaint.key for complaint in refused.value.complaints]
        assert keys == ["gpu", "engine"]
        assert "h200-sxm" in refused.value.complaints[0].rule

    def test_the_compiled_module_is_not_loaded(self):
        assert "h200-sxm" in gpus()
        silicon("h200-sxm", "vllm").find("scale_matrix")
        assert "aiconfigurator_core" not in sys.modules

    def test_joined_tables_keep_the_fastest_row(self):
        wanted = {"gemm_dtype": "fp8", "m": 64, "n": 10240, "k": 8192}
        times = [
            fastest_s(f"h200_sxm/gemm/{engine}/gemm", **wanted)
            for engine in ("vllm/0.24.0", "sglang/0.5.14", "trtllm/1.3.0rc20")
        ]
        found = silicon("h200-sxm", "trtllm").any_engine("gemm", **wanted)
        curve = found.curve("m", "a product", "one row")
        assert float(curve.at(64)) == pytest.approx(min(times))
        assert np.ptp(times) > 0


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "-packages" not in path])
    with pytest.raises(InputError) as refused:
        systems()
    (complaint,) = refused.value.complaints
    assert complaint.remedy == "pip install 'capplan[silicon]'"
