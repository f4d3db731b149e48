"""Step times by rooflines, against sums by hand."""

import numpy as np
import pytest

from capplan.cli.models import architecture
from capplan.physics.estimated_step import (
    COMPUTE,
    EXPERTS_S,
    HOST_S,
    KERNELS,
    LAUNCH_S,
    READ,
    EstimatedStep,
    Rates,
)
from capplan.physics.experts import independent_routing
from capplan.physics.load import decode_load
from capplan.physics.sharding import Split

RATES = Rates(2e12, 300e12, 200e9, 8e-6)


def test_one_token_of_a_dense_model_reads_its_weights_once() -> None:
    model = architecture("qwen2-0.5b")
    step = EstimatedStep(model, Split(1, 1), RATES, 2.0, 2.0)
    load = decode_load([1.0], 0, 1)
    launches = 24 * (KERNELS["attention"] + KERNELS["dense"]) + 1
    # 494 M parameters, the embedding being the output head, less norms of a few thousand.
    read_s = 494.03e6 * 2 / (READ * 2e12)
    expected = HOST_S + launches * LAUNCH_S + read_s
    assert step.step_s(load, None)[0] == pytest.approx(expected, rel=1e-3)


def test_many_tokens_of_a_dense_model_are_bound_by_arithmetic() -> None:
    step = EstimatedStep(architecture("qwen2-0.5b"), Split(1, 1), RATES, 2.0, 2.0, host_s=0.0)
    work_s = 2 * 494.03e6 * 1e5 / (COMPUTE * 300e12)
    assert step.step_s(decode_load([1e5], 0, 1), None)[0] == pytest.approx(work_s, rel=0.01)


def test_experts_add_what_is_read_and_what_is_computed() -> None:
    model = architecture("mixtral-8x7b")
    whole = EstimatedStep(model, Split(1, 1), RATES, 2.0, 2.0)
    none = EstimatedStep(model, Split(1, 1), RATES, 2.0, 0.0)
    routing, load = independent_routing(8, 2), decode_load([1.0], 0, 1)
    each = 3 * 4096 * 14336
    difference = whole.step_s(load, routing) - none.step_s(load, routing)
    assert difference[0] == pytest.approx(32 * 2 * each * 2 / (READ * 2e12))
    assert none.step_s(load, routing)[0] > 32 * (EXPERTS_S + 2 * 16 * each * 2 / (0.65 * 300e12))


def test_sums_over_gpus_cost_their_start_and_their_bytes() -> None:
    model = architecture("mixtral-8x7b")
    routing, load = independent_routing(8, 2), decode_load([8.0], 0, 1)
    near, far = (
        EstimatedStep(model, Split(2, 2), Rates(2e12, 300e12, link, 8e-6), 2.0, 2.0)
        for link in (200e9, 20e9)
    )
    moved = 2 * 32 * 8 * 4096 * 2
    difference = far.step_s(load, routing) - near.step_s(load, routing)
    assert difference[0] == pytest.approx(moved / 20e9 - moved / 200e9)


def test_verification_reads_keys_once_and_writes_states_for_every_token() -> None:
    hybrid = EstimatedStep(architecture("qwen3.5-27b"), Split(1, 1), RATES, 0.6, 0.6)
    batch = np.array([64.0])
    growth = [
        hybrid.step_s(decode_load(batch, c, 4), None)
        - hybrid.step_s(decode_load(batch, c, 1), None)
        for c in (0, 4096)
    ]
    # Keys and values of 4096 tokens do not count again; states do, at any context.
    assert growth[0] > 0
    assert growth[1] == pytest.approx(growth[0], rel=0.05)
