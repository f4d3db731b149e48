"""What docs/method.md says of fleets with speculation is what docs/figures/method.json holds, and
what the product computes."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
import pytest

from capplan.physics.composition import step_s
from capplan.physics.load import decode_load
from capplan.planner.surfaces import Surfaces
from composed import deployments, profiles, tables
from plotted.document import with_tables
from plotted.fleet import best_length, ratio
from plotted.replicas import candidate, curve_of, profile, reached
from plotted.spread import TPOT_P99_S, with_spread

DOCS = Path(__file__).parents[1] / "docs"
METHOD = (DOCS / "method.md").read_text()
TREE = json.loads((DOCS / "figures" / "method.json").read_text())
FLEET = {(case["model"], case["workload"]): case["objectives"] for case in TREE["fleet"]}
SPREAD = {
    case["workload"]: {row["per_request_sd"]: row["capacity_per_s"] for row in case["deviations"]}
    for case in TREE["spread"]
}


def rates(model: str, workload: str, tpot_p99_s: float) -> dict[str, float]:
    return next(
        row["capacity_per_s"] for row in FLEET[model, workload] if row["tpot_p99_s"] == tpot_p99_s
    )


def compared() -> list[dict[str, float]]:
    """Capacities wherever plain decoding keeps the objective."""
    every = [row["capacity_per_s"] for rows in FLEET.values() for row in rows]
    return [capacity for capacity in every if capacity["plain"] > 0]


def test_the_tables_are_the_numbers():
    assert with_tables(METHOD, TREE) == METHOD


def test_the_figures_stand_in_the_document_and_are_light():
    shown = re.findall(r"\]\((figures/\w+\.svg)\)", METHOD)
    assert sorted(shown) == sorted(
        str(path.relative_to(DOCS)) for path in (DOCS / "figures").glob("*.svg")
    )
    assert all((DOCS / name).stat().st_size < 60_000 for name in shown)


@pytest.mark.parametrize(
    ("model", "workload", "tpot_p99_s", "policy"),
    [
        ("moe", "chat", 0.030, "plain"),
        ("dense", "chat", 0.030, "always:3"),
        ("dense", "reasoning", 0.060, "always:1"),
    ],
)
def test_the_product_finds_the_capacities_again(model, workload, tpot_p99_s, policy):
    solved = candidate(profile(model), workload, tpot_p99_s)
    found = reached(solved, curve_of(solved, policy))
    assert found.rate_per_s == pytest.approx(rates(model, workload, tpot_p99_s)[policy], rel=0.03)


def test_the_product_finds_the_effect_of_spread_again():
    solved = candidate(with_spread(profile("moe"), 0.20), "chat", TPOT_P99_S)
    for policy in ("always:2", "always:5"):
        found = reached(solved, curve_of(solved, policy)).rate_per_s
        assert found == pytest.approx(SPREAD["chat"][0.20][policy], rel=0.03)


def test_plain_has_no_fleet_at_the_tightest_objectives_and_speculation_has():
    for rows in FLEET.values():
        tightest = rows[0]["capacity_per_s"]
        assert tightest["plain"] == 0
        assert tightest["always:3"] > 0


def test_the_ratio_rises_with_the_objective():
    for rows in FLEET.values():
        found = [ratio(row["capacity_per_s"], "best") for row in rows]
        known = [value for value in found if value is not None]
        # Simulated rates move by one or two per cent.
        assert all(later > 0.97 * earlier for earlier, later in pairwise(known))
        assert known[0] < 0.3
        assert 0.65 < known[-1] < 1


def test_too_long_drafts_cost_replicas_and_the_best_length_shrinks():
    for model in ("moe", "dense"):
        assert ratio(rates(model, "chat", 0.200), "always:7") > 1
        assert best_length(rates(model, "chat", 0.020)) == "always:3"
        assert best_length(rates(model, "chat", 0.200)) in ("always:1", "always:2")


def test_by_load_keeps_up_with_the_best_constant_and_wins_on_the_dense_staircase():
    for capacity in compared():
        best = capacity[best_length(capacity)]
        assert capacity["by-load"] > 0.98 * best
    gained = {
        key: max(
            one["by-load"] / one[best_length(one)]
            for one in (row["capacity_per_s"] for row in rows)
            if one["plain"] > 0
        )
        for key, rows in FLEET.items()
    }
    assert max(gained["moe", "chat"], gained["moe", "reasoning"]) < 1.02
    assert 1.05 < gained["dense", "reasoning"] < 1.12


def test_batches_shrink_as_much_as_answers_quicken():
    """Little's law: at one rate, mean batches are as mean times in the batch, preempted or not."""
    for row in TREE["equilibrium"]:
        assert row["plain_batch"] / row["batch"] == pytest.approx(row["in_batch"], rel=0.02)
        assert row["in_batch"] == pytest.approx(row["at_equilibrium"], rel=0.02)


def test_equilibrium_exceeds_fixed_batch_and_the_formula_overshoots():
    off = {}
    for row in TREE["equilibrium"]:
        assert row["at_equilibrium"] > row["at_fixed_batch"]
        error = abs(row["at_equilibrium_by_balance"] / row["at_equilibrium"] - 1)
        off.setdefault(row["model"], []).append(error)
        if (row["model"], row["draft_tokens"]) == ("moe", 3):
            assert row["first_order"] > row["at_equilibrium"]
    assert max(off["moe"]) < 0.04
    assert 0.25 < max(off["dense"]) < 0.305


def test_the_best_length_shrinks_with_the_spread():
    lengths = {
        name: [int(best_length(one).removeprefix("always:")) for one in rows.values()]
        for name, rows in SPREAD.items()
    }
    assert list(dict.fromkeys(lengths["chat"])) == [5, 3, 2]
    assert list(dict.fromkeys(lengths["reasoning"])) == [3, 2]


def test_the_comparison_with_the_synthetic_model_quotes_these_numbers():
    table = METHOD.split("| | synthetic | here | why |\n")[1].split("\n\n")[0]
    cells = [line.split(" | ")[2] for line in table.splitlines()[1:]]
    moe, dense = ("moe", "chat"), ("dense", "chat")
    powers = [
        log(rates("moe", name, 0.040)["plain"] / rates("moe", name, 0.020)["plain"]) / log(2)
        for name in ("chat", "reasoning")
    ]
    lost = [
        1 - max(SPREAD[name][0.20].values()) / max(SPREAD[name][0.02].values())
        for name in ("chat", "reasoning")
    ]
    row = next(
        row
        for row in TREE["equilibrium"]
        if (row["model"], row["workload"], row["load"], row["draft_tokens"])
        == ("dense", "chat", 0.85, 3)
    )
    assert cells[:7] == [
        f"{ratio(rates(*moe, 0.030), 'always:3'):.2f}",
        f"{ratio(rates('moe', 'reasoning', 0.030), 'always:3'):.2f}",
        f"{powers[0]:.1f} chat, {powers[1]:.1f} reasoning (20 to 40 ms)",
        f"{ratio(rates(*dense, 0.030), 'always:3'):.2f}",
        f"{ratio(rates(*dense, 0.100), 'always:3'):.2f}",
        f"{row['at_fixed_batch']:.2f} → {row['at_equilibrium']:.2f}",
        f"{lost[0]:.0%} chat, {lost[1]:.0%} reasoning (0.20)".replace("%", " %"),
    ]
    assert ratio(rates(*dense, 0.100), "always:5") < 1.005
    assert ratio(rates(*dense, 0.100), "always:7") > 1


def test_finer_prefill_chunks_hardly_change_the_dense_capacities():
    for case in TREE["grid"]:
        for policy, rate in case["shipped"].items():
            assert 0.99 < case["finer"][policy] / rate < 1.04
            ratios = [ratio(case[name], policy) for name in ("shipped", "finer")]
            assert ratios[0] == pytest.approx(ratios[1], rel=0.02)


def test_attention_to_the_dense_cache_is_shared_by_a_verification():
    whole, batch = deployments.llama(), np.array([128, 256])
    added = {
        (context, query): np.diff(step_s(whole, decode_load(batch, context, query)))[0]
        for context in (1, 1900)
        for query in (1, 4)
    }
    cache = added[1900, 1] - added[1, 1]
    assert 0.4 < cache / added[1900, 1] < 0.5
    assert added[1900, 4] - added[1, 4] == pytest.approx(cache, rel=0.01)


def test_the_moe_has_no_plateau_because_of_its_cache_and_its_experts():
    step = Surfaces.of(profile("moe"), None).step
    assert step.at(256, 4096, 1) / step.at(64, 4096, 1) == pytest.approx(1.80, abs=0.01)
    whole, batch = deployments.kimi(deployments.kimi_overlapping()), np.array([64, 256])
    load = decode_load(batch, 4096, 1)
    grown = np.diff(step_s(whole, load))[0]
    cache = step_s(whole, load) - step_s(whole, decode_load(batch, 1, 1))
    assert np.diff(cache)[0] / grown == pytest.approx(0.5, abs=0.05)
    assert np.diff(whole.sparse_s(load))[0] / grown == pytest.approx(0.37, abs=0.03)


def test_steps_between_the_dense_profiles_batches_are_what_is_composed_there():
    assert _worst_between(profiles.llama_plan(), "dense", largest=512) < 0.01


def test_steps_between_powers_of_two_take_up_to_as_much_longer_as_said():
    said = int(re.search(r"take up to (\d+) %\s+longer", METHOD)[1]) / 100
    batch, query = np.meshgrid(np.arange(1.0, 513.0), np.arange(1.0, 5.0), indexing="ij")
    exact = step_s(deployments.llama(), decode_load(batch, 1024, query))
    powers = 2 ** np.arange(10)
    read = np.array([np.interp(batch[:, 0], powers, line[powers - 1]) for line in exact.T]).T
    assert (exact / read).max() - 1 == pytest.approx(said, abs=0.005)


def test_steps_between_the_moe_profiles_batches_are_near_what_is_composed_there():
    assert _worst_between(profiles.kimi_plan(), "moe", largest=256) < 0.02


def _worst_between(plan: tables.Plan, model: str, largest: int) -> float:
    """Largest error of a read step, over every batch and draft length, at two contexts."""
    batches, contexts = tuple(range(1, largest + 1)), (1024, 8192)
    every = tables.step_table(replace(plan, batches=batches, contexts=contexts)).rows
    read = Surfaces.of(profile(model), None).step.at(
        *np.array([(cell.batch, cell.context_tokens, cell.query_tokens) for cell in every]).T
    )
    return float(np.abs(read / [cell.step_s for cell in every] - 1).max())
