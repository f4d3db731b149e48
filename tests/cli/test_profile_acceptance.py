"""`capplan profile acceptance` from the command line to a plan, with a model trained here."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from capplan.cli.app import app
from capplan.errors import InputError
from capplan.files.reader import read
from capplan.records.acceptance import MeasuredAcceptance
from capplan.records.profile import Profile

ROOT = Path(__file__).parents[2]
KIMI = ROOT / "profiles" / "h200-sxm" / "kimi-k2.5-int4-tp8.yaml"
FEW = ["--prompts", "chat", "--workload", "talk", "--max-tokens", "12", "--draft-tokens", "3"]
runner = CliRunner()


def acceptance(*arguments: str | Path) -> Result:
    return runner.invoke(app, ["profile", "acceptance", *map(str, arguments)])


def told(ended: Result) -> str:
    assert isinstance(ended.exception, InputError), ended.output
    return str(ended.exception)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    target = tmp_path / "target"
    target.mkdir()
    (target / "config.json").write_text('{"model_type": "llama"}')
    head = tmp_path / "head"
    head.mkdir()
    (head / "config.json").write_text('{"architectures": ["LlamaForCausalLMEagle3"]}')
    (tmp_path / "bare").mkdir()
    (tmp_path / "one.txt").write_text("Only one prompt stands here.\n")
    (tmp_path / "empty.txt").write_text("\n")
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "ngram", *FEW], "TARGET: is no folder, found nowhere"),
        (["bare", "ngram", *FEW], "TARGET: is no folder with a config.json"),
        (["target", "oracle", *FEW], "DRAFTER: is no drafter that capplan can run, found oracle"),
        (["target", "layers:0", *FEW], "is no drafter"),
        (["target", "ngram:4..2", *FEW], "the shorter first"),
        (["target", "ngram:0", *FEW], "needs lengths from 1"),
        (["target", "head", *FEW], "LlamaForCausalLMEagle3"),
        (["target", "bare", *FEW], "DRAFTER: is no folder with a config.json"),
        (["target", "ngram", *FEW, "--prompts", "one.txt"], "needs 2 prompts or more"),
        (["target", "ngram", *FEW, "--prompts", "empty.txt"], "holds no prompt"),
        (["target", "ngram", *FEW, "--prompts", "poems"], "known prompts: chat, code, extraction"),
        (["target", "ngram", *FEW, "--draft-tokens", "0"], "--draft-tokens: needs a whole number"),
        (["target", "ngram", *FEW, "--temperature", "-1"], "--temperature: needs a number"),
        (["target", "ngram", *FEW, "--temperature", "nan"], "--temperature: needs a number"),
        (["target", "ngram", *FEW, "-o", "a", "--into", "b"], "cannot be used with --output"),
        (["target", "ngram", *FEW, "-o", "one.txt"], "is there already"),
        (["target", "ngram", *FEW, "--into", str(KIMI)], "needs a drafter of kind ngram"),
        (["target", "int8", *FEW, "--into", str(KIMI), "--workload", "chat"], "has that workload"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_loaded(
    arguments: list[str], words: str
) -> None:
    assert words in told(acceptance(*arguments))


@pytest.mark.usefixtures("here")
def test_all_that_is_wrong_is_said_at_once() -> None:
    wrong = ["--prompts", "poems", "--workload", "a", "--seed", "-1", "--temperature", "-2"]
    said = told(acceptance("nowhere", "oracle", *wrong))
    for words in ("TARGET", "DRAFTER", "poems", "--seed", "--temperature"):
        assert words in said


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", [["acceptance", "target", "ngram"], ["routing", "target"]])
def test_without_transformers_it_says_how_to_get_it(command: list[str]) -> None:
    code = (
        "import sys; sys.modules['transformers'] = None; from capplan.cli.app import main; main()"
    )
    arguments = ["profile", *command, "--prompts", "chat", "--workload", "talk"]
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "pip install 'capplan[checkpoints]'" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("name", ["steps", "acceptance", "routing"])
def test_the_groups_help_names_its_commands(name: str) -> None:
    ended = runner.invoke(app, ["profile", "--help"])
    assert ended.exit_code == 0
    assert name in ended.stdout
    assert "profile MODEL" in ended.stdout
    assert runner.invoke(app, ["profile", name, "--help"]).exit_code == 0


@pytest.mark.torch
def test_a_folder_without_weights_is_refused(here: Path) -> None:
    pytest.importorskip("transformers")
    assert "transformers" in told(acceptance("target", "ngram", *FEW))
    assert not list(here.glob("*.yaml"))


@pytest.mark.torch
def test_random_prompts_are_refused(tiny_checkpoint: Path, here: Path) -> None:
    import numpy as np

    import tiny_moe

    reads = tiny_moe.tokenizer()
    drawn = np.random.default_rng(0).integers(1, len(reads), size=(3, 80))
    lines = [json.dumps({"prompt": reads.decode(row.tolist())}) for row in drawn]
    (here / "random.jsonl").write_text("\n".join([*lines, '{"prompt": "What is a heat pump?"}']))
    said = told(acceptance(tiny_checkpoint, "ngram", *FEW, "--prompts", "random.jsonl"))
    assert "undecodable" in said or "3 of 4 prompts surprise the model" in said


@pytest.mark.torch
def test_counts_go_into_a_file_and_no_text_with_them(tiny_checkpoint: Path, here: Path) -> None:
    arguments = (tiny_checkpoint, "ngram:1..3", *FEW, "--temperature", "0.8", "-o", "a.yaml")
    ended = acceptance(*arguments)
    assert ended.exit_code == 0, ended.output
    assert max(map(len, ended.stdout.splitlines()[:12])) <= 80
    found = read(here / "a.yaml", MeasuredAcceptance)
    assert found.kind == "ngram"
    table = found.acceptance["talk"]
    assert table.temperature == 0.8
    assert table.requests is not None
    assert table.rounds == sum(row.rounds for row in table.requests.rows)
    assert table.drafted_rounds is not None
    assert 0 < table.drafted_rounds < table.rounds
    assert len(table.accepted) == 3
    kept = (here / "a.yaml").read_text()
    lines = (ROOT / "prompts" / "chat.jsonl").read_text().splitlines()
    prompts = [json.loads(line)["prompt"] for line in lines]
    assert not any(word in kept for text in prompts for word in text.split() if len(word) > 9)
    again = acceptance(*arguments, "--force", "--format", "json")
    assert MeasuredAcceptance.model_validate_json(again.stdout).acceptance["talk"].accepted == (
        table.accepted
    )


@pytest.mark.torch
@pytest.mark.parametrize("temperature", ["0", "0.8"])
def test_a_model_that_drafts_for_itself_keeps_nearly_all(
    tiny_checkpoint: Path, here: Path, temperature: str
) -> None:
    del here
    options = [*FEW, "--temperature", temperature, "--format", "json"]
    ended = acceptance(tiny_checkpoint, tiny_checkpoint, *options)
    assert ended.exit_code == 0, ended.output
    table = MeasuredAcceptance.model_validate_json(ended.stdout).acceptance["talk"]
    assert table.drafted_rounds == table.rounds
    # Only rounds that a text ends in lose drafts, at most one a request.
    assert table.accepted[0] >= table.rounds - len(table.requests.rows)


@pytest.mark.torch
def test_a_drafter_with_other_tokens_is_refused(tiny_checkpoint: Path, here: Path) -> None:
    shutil.copytree(tiny_checkpoint, here / "other")
    tokenizer = json.loads((here / "other" / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    first, second, *_ = (word for word in vocabulary if len(word) == 1)
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (here / "other" / "tokenizer.json").write_text(json.dumps(tokenizer))
    said = told(acceptance(tiny_checkpoint, "other", *FEW))
    assert "must have the target's tokens; 2 of" in said


@pytest.mark.torch
def test_heads_that_a_checkpoint_lacks_are_refused(tiny_checkpoint: Path, here: Path) -> None:
    del here
    assert "0 layers for multi-token prediction" in told(acceptance(tiny_checkpoint, "mtp", *FEW))


@pytest.mark.torch
def test_what_was_measured_decides_a_plan(tiny_checkpoint: Path, here: Path) -> None:
    shutil.copy(KIMI, here / "mine.yaml")
    before = (here / "mine.yaml").read_text()
    forecast = (ROOT / "forecasts" / "three-classes.yaml").read_text()
    (here / "f.yaml").write_text(re.sub(r"workload: \w+", "workload: talk", forecast))

    def gpus() -> Result:
        options = ["--screen", "--policy", "plain,always:3", "--format", "json"]
        return runner.invoke(app, ["plan", "f.yaml", "--profile", "mine.yaml", *options])

    assert "talk" in told(gpus())
    ended = acceptance(tiny_checkpoint, "int8", *FEW, "--into", "mine.yaml")
    assert ended.exit_code == 0, ended.output
    assert "see that they are the same model" in ended.stderr
    drafter = read(here / "mine.yaml", Profile).drafters["eagle3"]
    measured = drafter.acceptance["talk"]
    assert measured.accepted is not None
    after = (here / "mine.yaml").read_text().splitlines()
    assert [line for line in before.splitlines() if line not in after] == []
    (plan,) = json.loads(gpus().stdout)["plans"]
    always = next(p for p in plan["policies"] if p["policy"] == "always:3")
    assert always["placement"]["gpus"] > 0
    tokens = 1 + sum(measured.accepted) / measured.rounds
    assert tokens > 3.5  # the INT8 copy is nearly the model itself
    for pool in always["pools"]:
        found = pool["service"]["at_capacity"]["tokens_per_round"]
        assert found == pytest.approx(tokens)
