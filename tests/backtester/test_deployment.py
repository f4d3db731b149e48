from dataclasses import replace

import pytest

from capplan.backtester.checkpoints import known_model
from capplan.backtester.deployment import UnclearError, deployment, requests_of, split
from capplan.files.catalogue import find
from capplan.files.reader import read
from capplan.physics.sharding import Split
from capplan.records.architecture import Architecture
from capplan.records.served import ServedRow

ROW = ServedRow(
    name="r", place="f:2", engine="trtllm", engine_version=None,
    checkpoint="deepseek-ai/DeepSeek-R1",
    gpu="b200-sxm", precision="fp8", matrices="fp8", experts="fp8_block", input_tokens=1024,
    output_tokens=1024, batch_size=32, tensor=8, pipeline=1, attention_copies=1, expert_slices=8,
    expert_groups=1, tpot_s=0.02,
)  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "layout", "in_flight"),
    [
        # tp, attention copies, moe_tp, moe_ep
        ((8, 1, 8, 1), Split(8, 8, 1), 32),
        ((8, 1, 1, 8), Split(8, 8, 8), 32),
        ((4, 1, 2, 2), Split(4, 4, 2), 32),
        ((1, 8, 1, 8), Split(8, 1, 8), 256),
        ((4, None, None, None), Split(4, 4, 1), 32),
        # Named tp8_ep8 where the columns say 64, 8 and 8.
        ((64, 1, 8, 8), Split(8, 8, 8), 32),
        # The same with copies: c256 has batch_size 4 beside 64 copies.
        ((1, 64, 8, 8), Split(8, 1, 8), 2048),
        # Copies left blank: attention on 1 GPU each, experts over 2.
        ((1, None, 2, 1), Split(2, 1, 1), 64),
    ],
)
def test_columns_of_sparse_rows_as_layouts(columns, layout, in_flight):
    names = ("tensor", "attention_copies", "expert_slices", "expert_groups")
    row = replace(ROW, **dict(zip(names, columns, strict=True)))
    found = split(row, sparse=True)
    assert found == layout
    assert requests_of(row, found).in_flight == in_flight


def test_a_name_with_the_same_number_counts_the_whole_replica():
    row = replace(ROW, tensor=1, attention_copies=64, expert_groups=8, batch_size=4)
    layout = split(row, sparse=True)
    assert requests_of(replace(row, name="agg_1024x1024_c256_x"), layout).in_flight == 256
    assert requests_of(replace(row, name="agg_1024x1024_c4_x"), layout).in_flight == 4


def test_columns_of_experts_mean_nothing_in_a_dense_model():
    assert split(replace(ROW, tensor=2, expert_slices=4), sparse=False) == Split(2, 2)


@pytest.mark.parametrize("change", [{"pipeline": 2}, {"tensor": 72, "expert_slices": 72}])
def test_pipelines_and_whole_racks_are_refused(change):
    with pytest.raises(UnclearError):
        split(replace(ROW, **change), sparse=True)


def test_lengths_of_inferencex_are_drawn_and_others_alike():
    assert not requests_of(ROW, Split(8, 8)).alike
    assert requests_of(replace(ROW, output_tokens=500), Split(8, 8)).alike


@pytest.mark.parametrize(
    ("model", "change", "precisions"),
    [
        ("deepseek-r1", {}, ("fp8_block", "fp8_block", "bf16")),
        ("deepseek-r1", {"matrices": "nvfp4", "experts": "nvfp4"}, ("nvfp4", "nvfp4", "fp8")),
        ("llama-3.1-70b", {"experts": "fp8"}, ("fp8", None, "fp8")),
        ("llama-3.1-70b", {"experts": "fp8", "engine": "vllm"}, ("fp8", None, "bf16")),
        ("qwen3-32b", {"matrices": None, "precision": None}, ("bf16", None, "bf16")),
    ],
)
def test_precisions(model, change, precisions):
    architecture = read(find("models", model), Architecture)
    found = deployment(replace(ROW, **change), architecture)
    assert (found.weights, found.experts, found.cache) == precisions


@pytest.mark.parametrize(
    ("checkpoint", "model"),
    [
        ("nvidia/DeepSeek-V3.1-NVFP4", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b"),
        ("zhipuai/GLM-5", "glm-5"),
        ("acme/GLM-55", None),
    ],
)
def test_checkpoints_by_their_names(checkpoint, model):
    known = ["deepseek-v3", "deepseek-r1", "llama-3.1-8b", "qwen3-235b-a22b", "glm-5"]
    assert known_model(checkpoint, known) == model
