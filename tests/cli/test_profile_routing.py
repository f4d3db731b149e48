"""`capplan profile routing` from the command line to a profile."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from capplan.cli.app import app
from capplan.errors import InputError
from capplan.files.reader import read
from capplan.records.profile import Profile
from capplan.records.routing import Routing

ROOT = Path(__file__).parents[2]
KIMI = ROOT / "profiles" / "h200-sxm" / "kimi-k2.5-int4-tp8.yaml"
runner = CliRunner()


def routing(*arguments: str | Path) -> Result:
    return runner.invoke(app, ["profile", "routing", *map(str, arguments)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    dense = tmp_path / "dense"
    dense.mkdir()
    (dense / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "one.txt").write_text("Only one text stands here.\n")
    (tmp_path / "short.txt").write_text("Far too short.\nThis as well.\n")
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "--prompts", "code", "--workload", "a"], "CHECKPOINT: is no folder"),
        (["dense", "--prompts", "one.txt", "--workload", "a"], "needs 2 texts or more"),
        (
            ["dense", "--prompts", "code", "--prompts", "chat", "--workload", "a"],
            "a name of its own for each --prompts",
        ),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], words: str) -> None:
    ended = routing(*arguments)
    assert isinstance(ended.exception, InputError)
    assert words in str(ended.exception)


@pytest.mark.torch
def test_texts_too_short_for_the_longest_lag_are_refused(tiny_checkpoint: Path, here: Path) -> None:
    ended = routing(tiny_checkpoint, "--prompts", here / "short.txt", "--workload", "a")
    assert isinstance(ended.exception, InputError)
    assert "longer than 16 tokens" in str(ended.exception)


@pytest.mark.torch
def test_workloads_are_measured_and_compared(tiny_checkpoint: Path, here: Path) -> None:
    pairs = ["--prompts", "code", "--workload", "code", "--prompts", "chat", "--workload", "chat"]
    ended = routing(tiny_checkpoint, *pairs, "-o", "r.yaml")
    assert ended.exit_code == 0, ended.output
    assert max(map(len, ended.stdout.splitlines())) <= 80
    found = read(here / "r.yaml", Routing)
    assert (found.experts, found.experts_per_token) == (16, 2)
    assert {name: part.sequences for name, part in found.workloads.items()} == {
        "code": 20,
        "chat": 20,
    }
    for workload in found.workloads.values():
        assert sum(part.layers for part in workload.layer_groups.values()) == 4
        for part in workload.layer_groups.values():
            assert part.across > 2 / 16  # a model that learned has favourites
            counts = {(r.batch, r.query_tokens): r.distinct_experts for r in part.distinct.rows}
            assert counts[1, 1] == 2
            # Two tokens touch 2k less what they share: a check of one table by another.
            assert counts[1, 2] == pytest.approx(4 - 2 * part.overlap[0], abs=0.01)
            assert part.popularity[5] < 1 < part.popularity[10]
    assert found.likeness is not None
    (row,) = found.likeness.rows
    assert (row.workload, row.other) == ("code", "chat")
    assert 0 < row.cosine < 1.01


@pytest.mark.torch
def test_answers_go_into_a_profile_and_stay_there_unless_forced(
    tiny_checkpoint: Path, here: Path
) -> None:
    shutil.copy(KIMI, here / "mine.yaml")
    before = (here / "mine.yaml").read_text()
    few = here / "few.jsonl"
    lines = (ROOT / "prompts" / "chat.jsonl").read_text().splitlines()[:8]
    few.write_text("\n".join(lines))
    arguments = ["--prompts", few, "--workload", "chat", "--max-tokens", "24"]
    ended = routing(tiny_checkpoint, *arguments, "--into", "mine.yaml", "--format", "json")
    assert ended.exit_code == 0, ended.output
    profile = read(here / "mine.yaml", Profile)
    assert profile.routing is not None
    assert profile.routing.workloads["chat"].positions <= 8 * 24
    assert json.loads(ended.stdout)["experts"] == 16
    assert (here / "mine.yaml").read_text().startswith(before.rstrip("\n"))
    again = routing(tiny_checkpoint, *arguments, "--into", "mine.yaml")
    assert "is there already" in str(again.exception)
