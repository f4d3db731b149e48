"""The models that come along, against what their makers publish and against one another."""

from pathlib import Path

import pytest

from capplan.files.reader import read
from capplan.physics.parameters import count_parameters
from capplan.records.architecture import Architecture

FOLDER = Path(__file__).parents[2] / "models"
FILES = sorted(FOLDER.glob("*.yaml"))

# Published figures that are rounded to fewer digits than 2 % asks for.
ROUNDED = {"kimi-k2.5"}


def test_the_models_of_the_examples_are_there() -> None:
    expected = {"kimi-k2.5", "llama-3.1-70b", "deepseek-v3", "qwen3-30b-a3b", "mixtral-8x7b"}
    assert expected | {"qwen3-0.6b", "bench-moe-128e"} <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_model_is_called_as_its_file_and_has_a_source(file: Path) -> None:
    model = read(file, Architecture)
    assert model.name == file.stem
    assert model.source.where


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_counts_agree_with_what_was_published(file: Path) -> None:
    model = read(file, Architecture)
    if model.published is None:
        assert model.name == "bench-moe-128e"
        return
    counted = count_parameters(model)
    tolerance = 0.03 if model.name in ROUNDED else 0.02
    assert counted.total == pytest.approx(model.published.parameters_total, rel=tolerance)
    if model.published.parameters_active is not None:
        assert counted.active == pytest.approx(model.published.parameters_active, rel=tolerance)
