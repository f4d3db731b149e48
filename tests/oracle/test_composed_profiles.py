"""The shipped, composed profiles against figures that did not go into them."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml

from capplan.files.reader import read, read_forecast
from capplan.physics.attention import Attention
from capplan.physics.composition import step_s
from capplan.physics.drafting import target_efficiency
from capplan.physics.experts import Routing
from capplan.physics.load import decode_load
from capplan.physics.surface import Array
from capplan.records.fleet import Fleet
from capplan.records.profile import Profile

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))
from composed import deployments, profiles, silicon  # noqa: E402

NAMES = ("h200-sxm/kimi-k2.5-int4-tp8.yaml", "h200-sxm/llama-3.1-70b-fp8-tp4.yaml")


def shipped(name: str) -> Profile:
    return read(ROOT / "profiles" / name, Profile)


# Kimi-K2, INT4, TP8 on 8 H200, 4096 tokens of context: a sum of public microbenchmarks worked out
# separately from this code, without fixed time. T in milliseconds for independent routing, and
# V = T(B, 4) / T(B, 1) for both ways of routing. It took the all-reduce table's sizes for bytes;
# they are elements, which is part of what differs at large batch.
KIMI_BATCH = np.array([1, 4, 8, 16, 32, 64, 128])
KIMI_MS = np.array([9.5, 12.0, 14.8, 19.2, 26.4, 36.2, 47.7])
KIMI_V_INDEPENDENT = np.array([1.23, 1.54, 1.68, 1.72, 1.57, 1.38, 1.34])
KIMI_V_OVERLAPPING = np.array([1.16, 1.33, 1.39, 1.42, 1.41, 1.40, 1.43])


def test_kimi_agrees_with_a_separate_sum_of_the_same_public_pieces() -> None:
    model = deployments.kimi(deployments.kimi_independent(), fixed_s=0)
    decode = step_s(model, decode_load(KIMI_BATCH, 4096, 1))
    np.testing.assert_allclose(1e3 * decode, KIMI_MS, rtol=0.12)


@pytest.mark.parametrize(
    ("routing", "expected"),
    [
        (deployments.kimi_independent(), KIMI_V_INDEPENDENT),
        (deployments.kimi_overlapping(), KIMI_V_OVERLAPPING),
    ],
    ids=["independent", "overlapping"],
)
def test_verification_over_decode_of_kimi_agrees_with_that_sum(
    routing: Routing, expected: Array
) -> None:
    model = deployments.kimi(routing, fixed_s=0)
    decode, verify = (step_s(model, decode_load(KIMI_BATCH, 4096, q)) for q in (1, 4))
    np.testing.assert_allclose(1 / target_efficiency(decode, verify), expected, rtol=0.12)


# Llama-3.1-70B, FP8, TP4 on H200 under vLLM, served in a closed loop: NVIDIA's silicon results in
# aiconfigurator (https://github.com/ai-dynamo/aiconfigurator, Apache-2.0). Input and output
# tokens, requests in flight, mean time an output token in milliseconds.
LLAMA_SERVED = [
    (1024, 8192, 4, 9.958),
    (1024, 8192, 8, 10.306),
    (1024, 8192, 16, 11.290),
    (1024, 8192, 32, 15.835),
    (1024, 8192, 64, 18.464),
    (1024, 1024, 8, 10.136),
    (1024, 1024, 16, 10.937),
    (1024, 1024, 32, 14.384),
    (1024, 1024, 64, 16.069),
]


@pytest.mark.parametrize(("prompt", "answer", "in_flight", "served_ms"), LLAMA_SERVED)
def test_llama_agrees_with_served_times_a_token(
    prompt: int, answer: int, in_flight: int, served_ms: float
) -> None:
    step = step_s(deployments.llama(), decode_load(in_flight, prompt + answer / 2, 1))
    low, high = 0.90 * float(step), 1.25 * float(step)
    assert low <= served_ms / 1e3 <= high


def test_long_answers_of_llama_agree_within_seven_percent() -> None:
    # Prompts are one token in nine here, so that prefill hardly disturbs.
    rows = np.array([row for row in LLAMA_SERVED if row[1] == 8192])
    steps = step_s(deployments.llama(), decode_load(rows[:, 2], 1024 + 4096, 1))
    np.testing.assert_allclose(1e3 * steps, rows[:, 3], rtol=0.07)


# Cells of NVIDIA's H200 tables that no term was fitted to: batch, context, microseconds.
LATENT_8_HEADS = [
    (2, 16384, 107),
    (4, 8192, 104),
    (8, 4096, 105),
    (16, 32768, 237),
    (32, 8192, 176),
    (128, 1024, 146),
    (128, 4096, 250),
]
GROUPED_16_2 = [
    (1, 32768, 24.0),
    (4, 65536, 79.0),
    (8, 2048, 16.3),
    (16, 16384, 77.3),
    (32, 8192, 76.0),
    (128, 1024, 49.8),
    (256, 2048, 143.5),
]


@pytest.mark.parametrize(
    ("kernel", "cells", "tolerance"),
    [
        (deployments.kimi(deployments.kimi_independent()).attention, LATENT_8_HEADS, 0.08),
        (deployments.llama().attention, GROUPED_16_2, 0.16),
    ],
    ids=["latent", "grouped"],
)
def test_attention_agrees_with_published_cells_left_out(
    kernel: Attention, cells: list[tuple[float, ...]], tolerance: float
) -> None:
    batch, context, us = np.array(cells).T
    times = kernel.at(decode_load(batch, context, 1))
    np.testing.assert_allclose(1e6 * times, us, rtol=tolerance)


def test_sparse_kernel_agrees_with_the_skewed_rows_it_was_not_fitted_to() -> None:
    # Up to 8 tokens power-law routing touches almost as many experts as balanced routing.
    piece = yaml.safe_load(silicon.TABLES.read_text())["moe-int4-384-8-tp8"]
    kernel = silicon.sparse_kernel("moe-int4-384-8-tp8", deployments.kimi_independent())
    tokens = np.array(piece["tokens"])
    few = tokens <= 8
    times = kernel.at(decode_load(tokens[few], 0, 1))
    np.testing.assert_allclose(1e6 * times, np.array(piece["power_law_us"])[few], rtol=0.08)


def test_acceptance_of_coding_gives_the_golden_curve_back() -> None:
    coding = shipped(NAMES[0]).drafters["eagle3"].acceptance["coding"]
    golden = [1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77]
    np.testing.assert_allclose(1 + np.cumsum(coding.accepted_share), golden, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_profile_is_what_the_script_composes(name: str) -> None:
    composed, file = (
        record.model_dump(mode="json") for record in (profiles.shipped()[name], shipped(name))
    )
    assert _texts(file) == _texts(composed)
    # Files hold six digits; another BLAS may round a fitted term differently in the fourth.
    np.testing.assert_allclose(_numbers(file), _numbers(composed), rtol=1.5e-3)


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_rectangular_and_intervals_hold_their_times(name: str) -> None:
    profile = shipped(name)
    for rows, axes in (
        (profile.steps.rows, ("batch", "context_tokens", "query_tokens")),
        (profile.mixed.rows, ("batch", "context_tokens", "query_tokens", "prefill_tokens")),
        (profile.prefill.rows, ("tokens", "cached_tokens")),
    ):
        cells = [tuple(getattr(row, axis) for axis in axes) for row in rows]
        grid = product(*(sorted(set(values)) for values in zip(*cells, strict=True)))
        assert cells == list(grid)
        assert all(row.low_s < row.step_s < row.high_s for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_bands_of_acceptance_hold_the_share(name: str) -> None:
    for accepted in shipped(name).drafters["eagle3"].acceptance.values():
        bands = zip(accepted.low_share, accepted.accepted_share, accepted.high_share, strict=True)
        assert all(low <= share <= high for low, share, high in bands)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_composed_is_called_measured(name: str) -> None:
    assert "measured" not in set(_kinds(shipped(name).model_dump(mode="json")))


def test_the_shipped_fleet_and_forecasts_fit_the_shipped_profiles() -> None:
    fleet = read(ROOT / "fleets" / "dgx-h200.yaml", Fleet)
    known = {shipped(name).model.name: shipped(name) for name in NAMES}
    assert {profile.deployment.gpu for profile in known.values()} <= set(fleet.gpus)
    for path in sorted((ROOT / "forecasts").glob("*.yaml")):
        forecast = read_forecast(path)
        profile = known.get(forecast.model)
        if profile is not None:
            workloads = profile.drafters["eagle3"].acceptance
            assert {one.acceptance_workload for one in forecast.classes} <= set(workloads)


def test_the_servegen_series_covers_two_weeks_with_its_published_mean() -> None:
    forecast = read_forecast(ROOT / "forecasts" / "servegen-m-large.yaml")
    values = forecast.classes[0].rate.values_per_s
    assert len(values) == 14 * 24
    assert np.mean(values) == pytest.approx(195.844, rel=1e-3)


def _texts(tree: object) -> object:
    """The tree with its numbers blotted out."""
    if isinstance(tree, dict):
        return {key: _texts(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_texts(value) for value in tree]
    return 0 if _is_number(tree) else tree


def _numbers(tree: object) -> list[float]:
    if isinstance(tree, dict):
        return [number for value in tree.values() for number in _numbers(value)]
    if isinstance(tree, list):
        return [number for value in tree for number in _numbers(value)]
    return [float(tree)] if _is_number(tree) else []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kinds(tree: object) -> list[str]:
    if isinstance(tree, dict):
        here = [tree["kind"]] if "kind" in tree else []
        return here + [kind for value in tree.values() for kind in _kinds(value)]
    if isinstance(tree, list):
        return [kind for value in tree for kind in _kinds(value)]
    return []
