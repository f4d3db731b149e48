from pathlib import Path
from typing import get_args

import pytest

import real_configs as real
from capplan.files.reader import read
from capplan.physics.precision import BITS, arithmetic, at_precision, flop_per_s, formats
from capplan.records.architecture import Architecture
from capplan.records.fleet import Fleet, Gpu
from capplan.records.stored import Precision, Stored

ROOT = Path(__file__).parents[2]
H200 = read(ROOT / "fleets" / "dgx-h200.yaml", Fleet).gpus["h200-sxm"]


@pytest.mark.parametrize("precision", get_args(Precision))
def test_a_precision_is_recognised_by_its_widths(precision):
    assert set(formats(at_precision(precision)).values()) == {precision}
    assert precision in BITS


@pytest.mark.parametrize(
    ("name", "experts"),
    [
        ("mixtral-8x7b", "bf16"),
        ("deepseek-v3", "fp8"),
        ("gpt-oss-120b", "mxfp4"),
        ("deepseek-v4-flash", "mxfp4"),
        ("kimi-k2.5", "int4"),
        ("kimi-k3", "mxfp4"),
    ],
)
def test_experts_of_shipped_models_have_the_format_their_makers_name(name, experts):
    stored = read(ROOT / "models" / f"{name}.yaml", Architecture).stored
    assert stored is not None
    assert formats(stored)["routed_experts"] == experts


@pytest.mark.parametrize(
    ("file", "experts"),
    [
        ("nvidia__Qwen3.6-35B-A3B-NVFP4", "nvfp4"),
        ("nvidia__DeepSeek-V4-Flash-NVFP4", "nvfp4"),
        ("sgl-project__DeepSeek-V4-Flash-FP8", "fp8"),
        ("meta-llama__Llama-4-Maverick-17B-128E-Instruct-FP8", "fp8"),
    ],
)
def test_experts_of_checkpoints_have_the_format_in_their_names(file, experts):
    stored = real.read(file).stored
    assert stored is not None
    assert formats(stored)["routed_experts"] == experts


def test_hopper_computes_in_eight_bits_and_unpacks_four():
    assert [arithmetic(one, H200) for one in ("bf16", "fp8", "int8")] == ["bf16", "fp8", "int8"]
    assert {arithmetic(one, H200) for one in ("int4", "mxfp4", "nvfp4")} == {"bf16"}
    assert flop_per_s("fp8", H200) == 1978e12
    assert flop_per_s("nvfp4", H200) is None


def test_a_gpu_without_eight_bits_refuses_them():
    old = Gpu(memory_bytes=8e10, tdp_w=400.0, idle_w=50.0, sources={}, precisions=("bf16", "int8"))
    assert arithmetic("fp8", old) is None
    assert arithmetic("int4", old) is None


def test_scales_are_counted():
    assert at_precision("nvfp4").routed_experts == 4.5
    assert at_precision("fp8").attention == pytest.approx(8.002, abs=1e-4)
    assert at_precision("int4").head == Stored(scheme="").head == 16
