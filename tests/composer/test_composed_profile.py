"""Composed profiles: grids, power and drafting against arithmetic by hand on the same terms."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from capplan.composer import Asked, composed
from capplan.composer.band import ENDS, band
from capplan.composer.drafting import ROUND_S, draft_time
from capplan.composer.grid import cliffs, grid_of
from capplan.composer.power import part_of_tdp
from capplan.composer.profile import composed_profile
from capplan.composer.wanted import Drafting, Wanted
from capplan.files.reader import read
from capplan.importers.silicon import silicon
from capplan.physics.draft_model import of_head
from capplan.physics.experts import independent_routing
from capplan.physics.load import decode_load
from capplan.physics.sharding import Split
from capplan.records.architecture import Architecture
from capplan.records.fleet import Fleet
from capplan.records.known_drafter import KnownDrafter
from capplan.records.stored import Stored
from silicon import MISSING, SILICON

ROOT = Path(__file__).parents[2]
pytestmark = SILICON


def architecture(name: str) -> Architecture:
    return read(ROOT / "models" / f"{name}.yaml", Architecture)


def llama(weights: str = "fp8") -> Asked:
    model = architecture("llama-3.1-70b")
    return Asked(model, "h200-sxm", Split(4, 4), "vllm", weights, None, "bf16")


def qwen() -> Asked:
    model = architecture("qwen3-30b-a3b")
    return Asked(model, "h200-sxm", Split(1, 1), "vllm", "bf16", "bf16", "bf16")


TABLES = silicon("h200-sxm", "vllm") if not MISSING else None
CURVES = tuple(
    curve
    for path in sorted((ROOT / "drafters").glob("*.yaml"))
    for curve in read(path, KnownDrafter).curves
)


def eagle() -> Drafting:
    known = read(ROOT / "drafters" / "eagle3-llama-70b.yaml", KnownDrafter)
    return Drafting(of_head(known.drafter), (), CURVES)


def wanted(asked: Asked, drafting: Drafting | None) -> Wanted:
    gpu = read(ROOT / "fleets" / "dgx-h200.yaml", Fleet).gpus["h200-sxm"]
    return Wanted(asked, Stored(scheme="fp8"), gpu, drafting, dt.date(2026, 12, 1), {}, coarse=True)


def test_cliffs_are_where_one_token_more_costs_a_jump() -> None:
    # FP8 products on H200 jump past 128 and 256 tokens in NVIDIA's rows.
    found = cliffs(composed(llama(), TABLES))
    assert {128, 256} <= set(found)
    grid = grid_of(composed(llama(), TABLES), 1e6, 8, coarse=False)
    # 42 sequences of 3 tokens stay below 128, 43 do not.
    assert {128, 129, 64, 65, 42, 43, 32, 33} <= set(grid.batches)


def test_memory_bounds_the_batch() -> None:
    found = composed(llama(), TABLES)
    assert grid_of(found, 30_000, 8, coarse=True).batches[-1] == 32
    assert grid_of(found, 10_000_000, 8, coarse=True).batches[-1] == 512
    assert grid_of(found, 100, 8, coarse=True).batches[-1] == 8


def test_no_table_goes_past_the_longest_context_of_the_model() -> None:
    short = llama().model.model_copy(update={"context_limit": 32768})
    grid = grid_of(composed(replace(llama(), model=short), TABLES), 1e6, 3, coarse=False)
    assert grid.contexts[-1] == 32768
    assert grid.cached_tokens == (0, 8192, 32768)
    assert grid.query_tokens == (1, 2, 3, 4)


def test_the_range_holds_independent_routing_and_is_never_narrower_than_assumed() -> None:
    load = decode_load(np.array([1.0, 8.0, 64.0]), 4096, 4)
    time_s, low_s, high_s = band(qwen(), TABLES).at(load)
    independent = replace(qwen(), routing=independent_routing(128, 8))
    alone_s = composed(independent, TABLES).step_s(load)
    assert np.all(alone_s < high_s)
    below, above = ENDS["moe"]
    assert np.all(low_s <= time_s * (1 - below))
    assert np.all(high_s >= time_s * (1 + above))


def test_watts_pass_through_the_published_medians() -> None:
    tokens = np.array([1, 8, 16, 128, 4096])
    np.testing.assert_allclose(
        part_of_tdp("h200-sxm", "moe", tokens), [0.63, 0.63, 0.65, 0.70, 0.79]
    )
    assert part_of_tdp("b200-sxm", "dense", np.array([128]))[0] == 0.96


def test_drafting_is_one_pass_over_the_verified_tokens_and_one_a_further_draft() -> None:
    time = draft_time(llama(), eagle(), TABLES)
    batch, drafted = np.array([16.0]), np.array([3.0])

    def parts_s(query_tokens: int) -> tuple[float, float]:
        parts = time.layers.parts_s(decode_load(batch, 4096, query_tokens))
        head = float(parts.pop("head")[0])
        del parts["fixed"]
        return float(sum(part for part in parts.values())[0]), head

    first, _ = parts_s(4)
    later, head = parts_s(1)
    assert time.fuse is not None
    by_hand = ROUND_S + float(time.fuse.at(64.0)) + first + 2 * later + 3 * head
    assert float(time.at(batch, drafted)[0]) == pytest.approx(by_hand)


def test_drafting_is_not_faster_than_memory_lets_it_be() -> None:
    time = draft_time(llama(), eagle(), TABLES)
    layer = 2 * 8192 * 80 * 128 + 8192**2 + 3 * 8192 * 28672
    one = float(
        time.at(np.array([1.0]), np.array([2.0]))[0] - time.at(np.array([1.0]), np.array([1.0]))[0]
    )
    assert one > 2 * (layer + 32000 * 8192) / 4 / 4.8e12


def test_every_number_of_a_composed_profile_has_an_origin_and_none_is_measured() -> None:
    profile = composed_profile(wanted(llama(), eagle()), TABLES).profile
    tables = (profile.steps, profile.mixed, profile.prefill, profile.drafters["eagle3"].draft)
    assert {table.origin.kind for table in tables} == {"composed"}
    assert profile.origin.kind == "composed"
    assert profile.memory.origin.kind == "estimated"
    assert {profile.power.origin.kind, profile.tail.origin.kind} == {"assumed"}
    drawn_from = (profile.steps.origin, profile.drafters["eagle3"].draft.origin)
    for origin in drawn_from:
        assert any("aiconfigurator-core" in source.where for source in origin.sources)
    for origin in (profile.mixed.origin, profile.prefill.origin):
        assert "stand with the steps" in origin.note


def test_a_drafter_that_cannot_be_composed_is_left_out_with_the_reason() -> None:
    known = read(ROOT / "drafters" / "eagle3-llama-70b.yaml", KnownDrafter).drafter
    attention = known.head.layer_kinds[0].attention.model_copy(update={"head_size": 99})
    kind = known.head.layer_kinds[0].model_copy(update={"attention": attention})
    odd = known.model_copy(update={"head": known.head.model_copy(update={"layer_kinds": (kind,)})})
    profile = composed_profile(wanted(llama(), Drafting(of_head(odd), (), CURVES)), TABLES).profile
    assert profile.drafters == {}
    (said,) = [one.text for one in profile.caveats if one.about == "drafter"]
    assert "cannot be composed" in said
    assert "head_dim=99" in said
