"""`capplan compose` and `capplan plan --on`, as a user runs them."""

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from capplan.cli.compose_run import Choice, compose
from capplan.errors import InputError
from capplan.files.reader import read
from capplan.records.composition import Composition
from capplan.records.profile import Profile
from silicon import needs_silicon

ROOT = Path(__file__).parents[2]
KIMI = ("compose", "kimi-k2.5", "--on", "b200-sxm:8")


def composition(capplan, *arguments: str) -> Composition:
    ran = capplan("compose", *arguments, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    return Composition.model_validate_json(ran.stdout, strict=True)


@needs_silicon
def test_a_table_in_80_columns_with_parts_ranges_and_caveats(capplan):
    ran = capplan(*KIMI)
    assert ran.returncode == 0, ran.stderr
    assert max(map(len, ran.stdout.splitlines())) <= 80
    for words in (
        "kimi-k2.5 on 8 x b200-sxm, composed",
        "NOT MEASURED",
        "weights a GPU",
        "sequences of 4,096",
        "T(B, 1), decoding",
        "T(B, 4), verifying 3 drafts",
        "target efficiency",
        "attention",
        "sparse",
        "all-reduce",
        "coding, imported: 2.88 tokens a round at 3 drafts",
        "chat, assumed:",
        "Measure with `capplan profile` before buying",
    ):
        assert words in ran.stdout, words


@needs_silicon
def test_the_profile_that_is_kept_is_the_one_that_json_prints(capplan):
    ran = capplan(*KIMI, "-o", "kept.yaml", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    printed = json.loads(ran.stdout)["profile"]
    kept = read(capplan.folder / "kept.yaml", Profile)
    assert kept.name == printed["name"] == "kimi-k2.5-int4-tp8-vllm"
    assert len(kept.steps.rows) == len(printed["steps"]["rows"])
    again = capplan(*KIMI, "-o", "kept.yaml")
    assert again.returncode == 1
    assert "is there already" in again.stderr
    assert capplan(*KIMI, "-o", "kept.yaml", "--force").returncode == 0


@needs_silicon
def test_tables_are_grids_with_holes_at_the_far_end_and_every_table_has_plain_steps(capplan):
    profile = composition(capplan, "qwen3-30b-a3b", "--on", "h200-sxm:1").profile
    for rows, axes in (
        (profile.steps.rows, ("batch", "context_tokens", "query_tokens")),
        (profile.mixed.rows, ("batch", "context_tokens", "query_tokens", "prefill_tokens")),
        (profile.prefill.rows, ("tokens", "cached_tokens")),
    ):
        cells = {tuple(getattr(row, axis) for axis in axes) for row in rows}
        for cell, place in product(cells, range(len(axes))):
            smaller = max((c[place] for c in cells if c[place] < cell[place]), default=None)
            assert smaller is None or (*cell[:place], smaller, *cell[place + 1 :]) in cells
    assert {row.query_tokens for row in profile.steps.rows} == set(range(1, 10))


@needs_silicon
def test_parts_sum_to_the_step_and_lie_inside_the_range(capplan):
    found = composition(
        capplan, "qwen3-235b-a22b", *["--on", "h200-sxm:4", "--weights", "fp8_block"]
    )
    for step in found.steps:
        assert sum(step.parts_s.values()) == pytest.approx(step.step_s, rel=2e-3)
        assert step.low_s < step.step_s < step.high_s
    known = {(c.batch, c.context_tokens, c.query_tokens): c for c in found.profile.steps.rows}
    same = [s for s in found.steps if (s.batch, s.context_tokens, s.query_tokens) in known]
    assert len(same) == len(found.steps)
    for step in same:
        cell = known[step.batch, step.context_tokens, step.query_tokens]
        assert (cell.step_s, cell.low_s, cell.high_s) == (step.step_s, step.low_s, step.high_s)


@needs_silicon
def test_the_cache_that_fits_is_what_arithmetic_says(capplan):
    found = composition(capplan, "llama-3.1-70b", *["--on", "h200-sxm:4", "--weights", "bf16"])
    # 70.55e9 numbers of two bytes over four GPUs; each gives 90 % of 143771 MiB less 3.5 GiB and
    # 392 MiB; a token has keys and values of 8 heads of 128 in 80 layers, in two bytes.
    free = 4 * (0.9 * 143771 * 2**20 - 3.5 * 2**30 - 392 * 2**20) - 70.55e9 * 2
    token = 2 * 8 * 128 * 80 * 2
    memory = found.profile.memory
    assert found.kv_bytes_per_token == token
    assert memory.kv_capacity_tokens == pytest.approx(free / token, rel=2e-3)
    assert memory.weights_bytes == pytest.approx(70.55e9 * 2, rel=2e-3)
    held = {one.context_tokens: one.sequences for one in found.held}
    assert held[4096] == int(memory.kv_capacity_tokens / 4096)


@needs_silicon
def test_copies_of_attention_hold_more_of_a_latent_cache(capplan):
    shared = composition(capplan, "deepseek-v3", "--on", "h200-sxm:8").profile
    # A latent cache is 576 numbers a layer and token, whole on every GPU that shares a sequence.
    assert shared.model.kv_bytes_per_token == 8 * 61 * 576 * 2
    assert any(one.about == "kv_bytes_per_token" for one in shared.caveats)


@needs_silicon
def test_a_drafter_takes_time_and_memory_of_its_own(capplan):
    found = composition(capplan, "llama-3.1-70b", *["--on", "h100-sxm:4", "--weights", "fp8"])
    drafter = found.profile.drafters["eagle3"]
    layer = 2 * 8192 * 80 * 128 + 8192**2 + 3 * 8192 * 28672
    head = 3 * 8192**2 + 32000 * 8192
    # What one matrix joins hidden states with stands on every GPU.
    assert 2 * (layer + head) <= drafter.memory_bytes <= 2 * (layer + head + 3 * 3 * 8192**2) * 1.01
    times = {(cell.batch, cell.draft_tokens): cell.draft_s for cell in drafter.draft.rows}
    # From the second draft on each pass costs the same at one batch.
    steps = [times[16, g + 1] - times[16, g] for g in range(2, 8)]
    assert max(steps) == pytest.approx(min(steps), rel=0.25)
    # No faster than reading the layer and the head from memory at 3.35 TB/s.
    assert min(steps) > 2 * (layer + 32000 * 8192) / 4 / 3.35e12


@needs_silicon
def test_a_model_without_a_drafter_is_composed_and_says_so(capplan):
    profile = composition(capplan, "mixtral-8x22b", "--on", "h100-sxm:8").profile
    assert profile.drafters == {}
    assert any("No drafter is known" in one.text for one in profile.caveats)


@needs_silicon
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("llama-3.1-8b --on h300:8", "is not a GPU of any known fleet, found h300\n    known: h2"),
        ("kimi-k3 --on b200-sxm:8", "model: has attention that is not composed, found kda"),
        ("llama-3.1-8b --on h200-sxm:1 -o missing/it.yaml", "there is no folder missing"),
    ],
)
def test_what_cannot_be_composed_is_refused_with_the_reason(capplan, arguments, told):
    ran = capplan("compose", *arguments.split())
    assert ran.returncode == 1
    assert told in ran.stderr
    assert not ran.stdout
    assert "Traceback" not in ran.stderr


@needs_silicon
@pytest.mark.parametrize(
    ("model", "choice", "told"),
    [
        ("llama-3.1-8b", Choice("h200-sxm"), "needs a kind of GPU and a number up to 4096"),
        ("llama-3.1-8b", Choice("h200-sxm:3"), "must divide the 32 attention heads"),
        ("llama-3.1-8b", Choice("h200-sxm:1", weights="nvfp4"), "has no table of matrix products"),
        ("llama-3.1-8b", Choice("h200-sxm:1", experts="fp8"), "has no routed experts"),
        ("llama-3.1-8b", Choice("h200-sxm:1", drafter="qwen3-0.6b"), "vocabulary of 128256"),
        ("llama-3.1-8b", Choice("h200-sxm:1", drafter="mtp"), "no head for multi-token prediction"),
        ("llama-3.1-9b", Choice("h200-sxm:1"), "did you mean llama-3.1-8b"),
    ],
)
def test_every_option_that_cannot_be_is_refused_by_name(model, choice, told):
    with pytest.raises(InputError, match=re.escape(told)):
        compose(model, choice)


@needs_silicon
def test_weights_that_do_not_fit_are_infeasible(capplan):
    ran = capplan("compose", "llama-3.1-70b", "--on", "h100-sxm:1")
    assert ran.returncode == 3
    assert "weights do not fit: 141.1 GB on each of 1 x h100-sxm, which have 72.8 GB" in ran.stderr
    assert "nearest feasible: tp2" in ran.stderr
    assert capplan("compose", "llama-3.1-70b", "--on", "h100-sxm:2").returncode == 0


def test_without_the_extra_the_remedy_is_named(capplan):
    code = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'aiconfigurator_core' else real(name)\n"
        "sys.argv = ['capplan', 'compose', 'llama-3.1-8b', '--on', 'h200-sxm:1']\n"
        "from capplan.cli.app import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=capplan.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "pip install 'capplan[silicon]'" in ran.stderr
    assert "Traceback" not in ran.stderr


@needs_silicon
def test_a_plan_composes_what_has_no_profile(capplan):
    ran = capplan(
        *["plan", "servegen-m-large", "--screen", "--model", "qwen3-235b-a22b"],
        *["--on", "b200-sxm:8", "--format", "json"],
    )
    assert ran.returncode == 0, ran.stderr
    plan = json.loads(ran.stdout)["plans"][0]
    assert plan["model"] == "qwen3-235b-a22b"
    assert plan["fleet"] == "dgx-b200"
    assert not plan["purchase_grade"]
    said = {caveat["text"] for caveat in plan["caveats"]}
    assert any("nobody ran this deployment" in text for text in said)
    # 235e9 numbers of two bytes need three B200 of 168 GB: four, as heads divide.
    sizes = {pool["service"]["gpus_per_replica"] for p in plan["policies"] for pool in p["pools"]}
    assert sizes == {4}
    # Ranges hold what is unknown: the low end is well below the high one.
    for policy in plan["policies"]:
        assert policy["gpu_range"]["high_gpus"] > 1.5 * policy["gpu_range"]["low_gpus"]


@needs_silicon
def test_a_kept_composition_plans_like_the_one_on_the_fly(capplan):
    on = ("--on", "b200-sxm:4")
    kept = capplan("compose", "qwen3-235b-a22b", *on, "-o", "own.yaml")
    assert kept.returncode == 0, kept.stderr
    ask = ("plan", "servegen-m-large", "--screen", "--policy", "plain", "--format", "json")
    text = (ROOT / "forecasts" / "servegen-m-large.yaml").read_text()
    moved = text.replace("model: kimi-k2.5", "model: qwen3-235b-a22b")
    (capplan.folder / "own-forecast.yaml").write_text(moved)
    series = ROOT / "forecasts" / "servegen-m-large.csv"
    (capplan.folder / "servegen-m-large.csv").write_text(series.read_text())
    by_file = capplan(
        *["plan", "own-forecast.yaml", *ask[2:]],
        *["--profile", "own.yaml", "--fleet", "dgx-b200"],
    )
    assert by_file.returncode == 0, by_file.stderr
    at_once = capplan(*ask, "--model", "qwen3-235b-a22b", *on)
    gpus = [
        json.loads(ran.stdout)["plans"][0]["policies"][0]["placement"]["gpus"]
        for ran in (by_file, at_once)
    ]
    assert gpus[0] == gpus[1]


def test_known_profiles_on_the_gpu_come_before_composing(capplan):
    ran = capplan("plan", "three-classes", "--screen", *["--on", "h200-sxm:8", "--format", "json"])
    assert ran.returncode == 0, ran.stderr
    plan = json.loads(ran.stdout)["plans"][0]
    used = {pool["service"]["profile"] for p in plan["policies"] for pool in p["pools"]}
    assert used == {"kimi-k2.5-int4-tp8"}


def test_a_profile_whose_longer_drafts_end_early_is_simulated_to_the_end(capplan):
    # Latent attention was timed up to 1024 tokens of a step.
    ran = capplan("plan", "three-classes", *["--on", "b200-sxm:8", "--format", "json"])
    assert ran.returncode == 0, ran.stderr
    plan = json.loads(ran.stdout)["plans"][0]
    used = {pool["service"]["profile"] for p in plan["policies"] for pool in p["pools"]}
    assert used == {"kimi-k2.5-nvfp4-tp8-vllm"}
    assert plan["seed"] is not None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--model qwen3-30b-a3b", "--model: needs --on, found qwen3-30b-a3b"),
        ("--tp 4", "--tp: needs --on, found 4"),
        ("--on h200-sxm:8 --profile kimi-k2.5-int4-tp8", "leave out --profile or --on"),
        ("--on nothing:8", "is not a GPU of any known fleet"),
    ],
)
def test_options_that_do_not_go_together_are_refused(capplan, arguments, told):
    ran = capplan("plan", "three-classes", "--screen", *arguments.split())
    assert ran.returncode == 1
    assert told in ran.stderr


@needs_silicon
def test_a_model_larger_than_the_gpus_is_infeasible(capplan):
    ran = capplan(
        *["plan", "servegen-m-large", "--screen", "--model", "llama-3.1-405b"],
        *["--on", "h200-sxm:2"],
    )
    assert ran.returncode == 3
    assert "no layout of up to 2 x h200-sxm holds the weights" in ran.stderr


def test_a_plain_plan_loads_no_operator_tables(capplan):
    code = (
        "import sys; sys.argv = ['capplan', 'plan', 'three-classes', '--screen']\n"
        "from capplan.cli.app import main\n"
        "main()\n"
    )
    probe = (
        f"import contextlib, sys\nwith contextlib.suppress(SystemExit):\n"
        f"    exec({code!r})\n"
        "print(*(n for n in sys.modules if n.startswith(('pyarrow', 'aiconfigurator', "
        "'capplan.composer', 'capplan.importers.silicon'))), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=capplan.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Verdict" in ran.stdout
    assert ran.stderr.strip() == ""
