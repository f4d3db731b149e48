"""`capplan profile` from the command line to the file, on a model small enough for a test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from capplan.cli.app import app
from capplan.errors import InputError, MeasureError
from capplan.files.reader import read
from capplan.records.profile import Profile

DENSE = """
version: 1
name: tiny
hidden_size: 64
vocabulary: 128
tied_embeddings: true
layer_kinds:
  - layers: 3
    attention: {kind: gqa, heads: 4, kv_heads: 2, head_size: 16}
    feed_forward: {kind: dense, width: 96}
source: {what: all, where: this test}
"""
SPARSE = """
version: 1
name: tiny-moe
hidden_size: 64
vocabulary: 128
tied_embeddings: false
layer_kinds:
  - layers: 1
    attention:
      kind: mla
      heads: 4
      query_rank: 16
      kv_rank: 16
      nope_head_size: 8
      rope_head_size: 8
      value_head_size: 8
    feed_forward: {kind: dense, width: 96}
  - layers: 2
    attention:
      kind: mla
      heads: 4
      query_rank: 16
      kv_rank: 16
      nope_head_size: 8
      rope_head_size: 8
      value_head_size: 8
    feed_forward:
      kind: moe
      experts: 8
      experts_per_token: 2
      expert_width: 32
      shared_width: 32
      router_bias: true
source: {what: all, where: this test}
"""
SMALL = ["--batches", "1,2,4", "--contexts", "8,16", "--draft-tokens", "1"]
SMALL += ["--max-batched-tokens", "32", "--device", "cpu"]

runner = CliRunner()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "dense.yaml").write_text(DENSE)
    (tmp_path / "sparse.yaml").write_text(SPARSE)
    return tmp_path


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_help_needs_neither_torch_nor_numpy_nor_scipy() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom capplan.cli.app import app\n"
        "assert CliRunner().invoke(app, ['profile', '--help']).exit_code == 0\n"
        "print(sorted({'torch', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    assert python(code).stdout == "[]\n"


@pytest.mark.usefixtures("here")
def test_without_torch_it_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['torch'] = None; from capplan.cli.app import main; main()"
    ended = python(code, "profile", "dense.yaml")
    assert ended.returncode == 1
    assert "pip install torch" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dense.yaml", "--batches", "1,x"], "--batches: needs whole numbers"),
        (["dense.yaml", "--contexts", "0"], "--contexts: needs whole numbers"),
        (["dense.yaml", "--contexts", "9" * 99], "--contexts: needs whole numbers"),
        (["dense.yaml", "--layers", "half"], "--layers: needs auto"),
        (["dense.yaml", "--layers", "0"], "at least 1"),
        (
            ["dense.yaml", "--batches", "1000001"],
            "--batches: needs whole numbers from 1 to 1000000",
        ),
        (["dense.yaml", "--seed", "9" * 23], "--seed: needs a whole number from 0"),
        (["dense.yaml", "--seed", "-1"], "--seed: needs a whole number from 0"),
        (["dense.yaml", "--runs", "0", "--draft-tokens", "65"], "--draft-tokens: needs a whole"),
        (["dense.yaml", "--runs", "0", "--draft-tokens", "65"], "--runs: needs a whole"),
        (["dense.yaml", "--max-batched-tokens", "0"], "--max-batched-tokens: needs a whole"),
        (["nothing-of-the-kind"], "nothing-of-the-kind"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], words: str) -> None:
    ended = runner.invoke(app, ["profile", *arguments])
    assert isinstance(ended.exception, InputError)
    assert words in str(ended.exception)


def test_a_configuration_that_is_not_understood_is_refused_with_its_line(here: Path) -> None:
    (here / "config.json").write_text('{\n "model_type": "rwkv7"\n}')
    ended = runner.invoke(app, ["profile", "config.json"])
    assert isinstance(ended.exception, InputError)
    assert "config.json:2:" in str(ended.exception)


@pytest.mark.torch
def test_a_quick_look_at_a_dense_model_ends_in_a_profile(here: Path) -> None:
    pytest.importorskip("torch")
    ended = runner.invoke(app, ["profile", "dense.yaml", "--quick", "--device", "cpu"])
    assert ended.exit_code == 0, ended.output
    (path,) = here.glob("profiles/cpu-*/tiny-fp32-x1.yaml")
    assert f"Wrote {path.relative_to(here)}" in ended.stdout
    assert max(len(line) for line in ended.stdout.splitlines() if "┃" in line) <= 80
    profile = read(path, Profile)
    assert (
        profile.model.parameters_total
        == 128 * 64 + 3 * (64 * 128 + 64 * 64 + 3 * 64 * 96 + 2 * 64) + 64
    )
    assert profile.model.kv_bytes_per_token == 3 * 2 * 2 * 16 * 4
    # The largest mixed step: a chunk of 32 beside 16 sequences of 3 tokens.
    assert profile.limits.max_batched_tokens == 32 + 16 * 3
    assert profile.origin.kind == "composed"
    assert profile.origin.note is not None
    assert "1 of 3" in profile.origin.note
    assert profile.power is None
    assert profile.tail.origin.kind == "assumed"
    assert {caveat.about for caveat in profile.caveats} >= {"depth", "acceptance", "tail"}
    assert all(cell.distinct_experts is None for cell in profile.steps.rows)
    assert all(cell.low_s is not None for cell in profile.steps.rows)
    assert not list(here.glob("profiles/*/*.jsonl"))


@pytest.mark.torch
def test_a_model_that_fits_is_measured_whole_and_counts_its_experts(here: Path) -> None:
    pytest.importorskip("torch")
    arguments = ["profile", "sparse.yaml", *SMALL, "--runs", "2"]
    ended = runner.invoke(app, [*arguments, "--format", "json", "-o", "x.yaml"])
    assert ended.exit_code == 0, ended.output
    profile = Profile.model_validate_json(ended.stdout)
    assert profile.origin.kind == "measured"
    assert profile.power is None
    assert profile.limits.max_batch == 4
    # The budget asked for: the largest batch verifies 4 · 2 tokens and leaves a chunk of 24.
    assert profile.limits.max_batched_tokens == 32
    assert max(cell.prefill_tokens for cell in profile.mixed.rows) == 24
    assert profile.origin.note is not None
    assert "limits.max_batched_tokens" in profile.origin.note
    assert profile.deployment.parallelism == "tp1"
    counts = {(c.batch, c.query_tokens): c.distinct_experts for c in profile.steps.rows}
    assert counts[1, 1] == 2
    assert all(count is not None and 2 <= count <= 8 for count in counts.values())
    stored = read(here / "x.yaml", Profile)
    assert [cell.batch for cell in stored.steps.rows] == [c.batch for c in profile.steps.rows]


@pytest.mark.torch
def test_a_killed_run_goes_on_where_it_was(here: Path) -> None:
    pytest.importorskip("torch")
    arguments = ["profile", "dense.yaml", *SMALL, "--runs", "2", "-o", "x.yaml"]
    # Kills itself, without any chance to tidy up, while it writes the sixth cell.
    code = (
        "import os, signal\nfrom capplan.cli import journal\nfrom capplan.cli.app import main\n"
        "append, done = journal.Journal.append, []\n"
        "def sixth(self, cell):\n"
        "    done.append(cell)\n"
        "    if len(done) == 6:\n"
        "        with self.path.open('a') as file:\n"
        '            file.write(\'{"StepCell": {"batch": 4, "con\')\n'
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    append(self, cell)\n"
        "journal.Journal.append = sixth\nmain()"
    )
    killed = python(code, *arguments)
    assert killed.returncode == -9, killed.stderr
    assert not (here / "x.yaml").exists()
    lines = (here / "x.yaml.partial.jsonl").read_text().splitlines()[1:6]
    first = [next(iter(json.loads(line).items())) for line in lines]

    other = runner.invoke(app, [*arguments, "--seed", "1"])
    assert isinstance(other.exception, InputError)
    assert "x.yaml.partial.jsonl: seed" in str(other.exception)

    ended = runner.invoke(app, [*arguments, "--format", "json"])
    assert ended.exit_code == 0, ended.output
    profile = Profile.model_validate_json(ended.stdout)
    tables = {
        "StepCell": profile.steps.rows,
        "MixedCell": profile.mixed.rows,
        "PrefillCell": profile.prefill.rows,
    }
    for kind, row in first:
        assert row in [cell.model_dump() for cell in tables[kind]]
    assert len(profile.steps.rows) == 3 * 2 * 2
    assert not (here / "x.yaml.partial.jsonl").exists()


@pytest.mark.torch
def test_ctrl_c_keeps_the_cells_and_says_so(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from capplan.cli.journal import Journal

    append = Journal.append

    def interrupted(self: Journal, cell: object) -> None:
        append(self, cell)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "append", interrupted)
    ended = runner.invoke(app, ["profile", "dense.yaml", *SMALL, "--runs", "2", "-o", "x.yaml"])
    assert ended.exit_code == 130
    assert "goes on after the last cell" in ended.stderr
    assert len((here / "x.yaml.partial.jsonl").read_text().splitlines()) == 2


@pytest.mark.torch
def test_a_model_too_large_for_this_machine_is_refused_with_its_size(here: Path) -> None:
    pytest.importorskip("torch")
    huge = DENSE.replace("hidden_size: 64", "hidden_size: 9999999")
    (here / "huge.yaml").write_text(huge)
    ended = runner.invoke(app, ["profile", "huge.yaml", "--device", "cpu"])
    assert isinstance(ended.exception, MeasureError)
    assert "bytes" in str(ended.exception)


@pytest.mark.torch
@pytest.mark.parametrize(
    "output",
    [
        "folder",
        "dense.yaml/x.yaml",
        "no/x.yaml",
        "dangling.yaml",
        "dense.yaml",
        "-",
        "/dev/full",
        f"{'x' * 245}.yaml",
        f"{'x' * 300}.yaml",
    ],
)
def test_where_no_file_can_be_is_said_before_measuring(
    here: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    pytest.importorskip("torch")
    from capplan.profiler import sweep

    monkeypatch.setattr(sweep, "sweep", lambda *_: pytest.fail("measured"))
    (here / "folder").mkdir()
    (here / "dangling.yaml").symlink_to(here / "nowhere" / "x.yaml")
    before = sorted(here.rglob("*"))
    ended = runner.invoke(app, ["profile", "dense.yaml", *SMALL, "-o", output])
    assert isinstance(ended.exception, InputError)
    assert output in str(ended.exception)
    assert sorted(here.rglob("*")) == before
    assert (here / "dense.yaml").read_text() == DENSE


@pytest.mark.torch
def test_a_finished_profile_is_replaced_by_force_alone(here: Path) -> None:
    pytest.importorskip("torch")
    (here / "x.yaml").write_text("mine")
    arguments = ["profile", "dense.yaml", *SMALL, "--runs", "1", "-o", "x.yaml"]
    refused = runner.invoke(app, arguments)
    assert "x.yaml: is there already" in str(refused.exception)
    assert "--force" in str(refused.exception)
    assert (here / "x.yaml").read_text() == "mine"
    assert runner.invoke(app, [*arguments, "--force"]).exit_code == 0
    assert read(here / "x.yaml", Profile).model.name == "tiny"


@pytest.mark.torch
@pytest.mark.parametrize("size_bytes", [100, 2000])
def test_a_full_disk_ends_in_a_message_and_loses_no_cell(here: Path, size_bytes: int) -> None:
    pytest.importorskip("torch")
    arguments = ["profile", "dense.yaml", *SMALL, "--runs", "1", "-o", "x.yaml"]
    code = (
        "import resource; from capplan.cli.app import main\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size_bytes}, {size_bytes})); main()"
    )
    ended = python(code, *arguments)
    assert ended.returncode == 1
    assert "x.yaml.partial.jsonl: cannot be used: File too large" in ended.stderr
    assert "Traceback" not in ended.stderr
    journal = here / "x.yaml.partial.jsonl"
    if size_bytes == 100:
        assert not journal.exists()  # not even the settings fit
        return
    assert "repeat the command" in ended.stderr
    done = [json.loads(line) for line in journal.read_text().splitlines()[1:-1]]
    assert done
    again = runner.invoke(app, [*arguments, "--format", "json"])
    assert again.exit_code == 0, again.output
    steps = json.loads(again.stdout)["steps"]["rows"]
    assert all(row["StepCell"] in steps for row in done if "StepCell" in row)


@pytest.mark.torch
def test_a_token_budget_that_leaves_no_chunk_is_refused(here: Path) -> None:
    pytest.importorskip("torch")
    arguments = ["profile", "dense.yaml", *SMALL, "--max-batched-tokens", "8"]
    ended = runner.invoke(app, arguments)
    assert isinstance(ended.exception, InputError)
    assert "--max-batched-tokens: must exceed 8" in str(ended.exception)
    assert not (here / "profiles").exists()


def test_a_checkpoint_folder_stands_for_its_configuration(here: Path) -> None:
    (here / "checkpoint").mkdir()
    (here / "checkpoint" / "config.json").write_text("{}")
    ended = runner.invoke(app, ["profile", "checkpoint"])
    assert isinstance(ended.exception, InputError)
    assert str(ended.exception).startswith("checkpoint/config.json:1:1")
    assert "model_type" in str(ended.exception)


FLEET = """
version: 1
name: cpus
gpus: {GPU: {memory_bytes: 16e9, tdp_w: 200, idle_w: 50, sources: {all: this test}}}
nodes:
  server:
    gpu: GPU
    gpus: 2
    nameplate_w: 800
    other_idle_w: 50
    other_load_w: 80
    rack_units: 1
    sources: {all: this test}
rack: {power_w: 8000, units: 42, sources: {all: this test}}
site: {pue: 1.3, energy_usd_per_kwh: 0.1, sources: {all: this test}}
prices: {GPU: {hold_usd_per_gpu_hour: 0.1, energy_included: true, sources: {all: this test}}}
"""
FORECAST = """
version: 1
name: small
model: tiny-moe
time: {start: 2026-11-30T00:00:00Z, step: 1h}
rate: {values_per_s: [0.1, 0.2]}
classes:
  - name: chat
    share: 1
    input_tokens: {mean_tokens: 6, cv: 0.2, max_tokens: 10}
    output_tokens: {mean_tokens: 4, cv: 0.2, max_tokens: 8}
    objectives: {ttft_p99: 5s, tpot_p99: 500ms}
"""


@pytest.mark.torch
def test_what_was_measured_here_can_be_planned_with(here: Path) -> None:
    pytest.importorskip("torch")
    arguments = ["profile", "sparse.yaml", *SMALL, "-o", "own.yaml", "--runs", "6"]
    assert runner.invoke(app, arguments).exit_code == 0
    measured = read(here / "own.yaml", Profile)
    (here / "fleet.yaml").write_text(FLEET.replace("GPU", measured.deployment.gpu))
    (here / "forecast.yaml").write_text(FORECAST)
    arguments = ["plan", "forecast.yaml", "--profile", "own.yaml", "--fleet", "fleet.yaml"]
    ended = runner.invoke(app, [*arguments, "--format", "json"])
    assert ended.exit_code == 0, ended.output
    plan = json.loads(ended.output)["plans"][0]
    (plain,) = plan["policies"]
    # Two requests in ten seconds keep one engine idle most of the time: T(1) from the table.
    decode = [c for c in measured.steps.rows if c.batch == 1 and c.query_tokens == 1]
    ends = [cell.step_s for cell in decode]
    assert min(ends) <= plain["pools"][0]["at_peak"]["decode_s"] <= max(ends)
    assert plain["placement"]["gpus"] == 2
    assert plain["power"] is None  # no meter
