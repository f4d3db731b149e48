"""The models that come along, against what their makers publish and against one another."""

from pathlib import Path

import pytest

from capplan.files.reader import read
from capplan.physics.cache import kv_bytes_per_token, state_bytes_per_sequence
from capplan.physics.parameters import Parameters, count_parameters
from capplan.records.architecture import Architecture

FOLDER = Path(__file__).parents[2] / "models"
FILES = sorted(FOLDER.glob("*.yaml"))

# The bench model is nobody's; no figures of the other were found.
WITHOUT_FIGURES = {"bench-moe-128e", "glm-5.3-flash"}
# Published figures that are rounded to fewer digits than 2 % asks for.
ROUNDED = {"kimi-k2": 0.03, "kimi-k2.5": 0.03}
CUT = {"minimax-m3": 0.505e9}
"""A card that says about 23 B of 23.504 B."""
ASKED_FOR = """
mixtral-8x7b qwen3-30b-a3b qwen3-235b-a22b qwen3-next-80b-a3b qwen3.5-397b-a17b deepseek-v3
deepseek-v3.2 deepseek-v4-flash deepseek-v4-pro kimi-k2 kimi-k2.5 glm-4.5 glm-5 gpt-oss-20b
gpt-oss-120b llama-3.1-70b llama-4-scout llama-4-maverick minimax-m2.5 nemotron-3-nano-30b-a3b
nemotron-3-super-120b-a12b nemotron-h-56b gemma-4-26b-a4b gemma-3-1b bench-moe-128e
"""


def model(name: str) -> Architecture:
    return read(FOLDER / f"{name}.yaml", Architecture)


def without_embedding_and_head(found: Parameters) -> int:
    return found.active_without_embedding - found.head


def test_the_models_that_people_ask_for_are_there() -> None:
    assert set(ASKED_FOR.split()) <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_model_is_called_as_its_file_and_has_a_source(file: Path) -> None:
    found = read(file, Architecture)
    assert found.name == file.stem
    assert found.source.where


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_counts_agree_with_what_was_published(file: Path) -> None:
    found = read(file, Architecture)
    if found.published is None:
        assert found.name in WITHOUT_FIGURES
        return
    counted = count_parameters(found)
    tolerance = ROUNDED.get(found.name, 0.02)
    assert counted.total == pytest.approx(found.published.parameters_total, rel=tolerance)
    published = found.published.parameters_active
    if published is None:
        return
    note = found.published.note or ""
    number = counted.active
    if "without the embedding and the output head" in note:
        number = without_embedding_and_head(counted)
    elif "without the embedding" in note:
        number = counted.active_without_embedding
    digit = 0.5e9 if published % 1e9 == 0 else 0.05e9
    assert number == pytest.approx(published, abs=CUT.get(found.name, max(0.02 * published, digit)))


@pytest.mark.parametrize(
    ("name", "total", "active", "kv_bytes"),
    [
        ("mixtral-8x7b", 46.7e9, 12.9e9, 131_072),
        ("deepseek-v3", 671e9, 37.6e9, 70_272),
        ("qwen3-30b-a3b", 30.5e9, 3.35e9, 98_304),
        ("kimi-k2", 1.026e12, 32.9e9, 70_272),
        ("gpt-oss-120b", 116.8e9, 5.71e9, 36_864),
        ("llama-3.1-70b", 70.6e9, 70.6e9, 327_680),
    ],
)
def test_the_figures_that_everybody_knows(
    name: str, total: float, active: float, kv_bytes: int
) -> None:
    found = model(name)
    counted = count_parameters(found)
    assert counted.total == pytest.approx(total, rel=0.002)
    assert counted.active == pytest.approx(active, rel=0.002)
    assert kv_bytes_per_token(found, 2) == kv_bytes


def test_prediction_layers_are_in_memory_and_not_in_the_total() -> None:
    counted = count_parameters(model("deepseek-v3"))
    # 14 B of the released weights, 1.9 B of which repeat the embedding and the output head.
    assert counted.in_memory - counted.total == pytest.approx(14e9 - 2 * 0.927e9, rel=0.07)


def test_only_hybrids_and_windows_keep_what_does_not_grow() -> None:
    kept = {file.stem: state_bytes_per_sequence(read(file, Architecture), 2) for file in FILES}
    assert kept["qwen3-235b-a22b"] == kept["deepseek-v3.2"] == 0
    assert kept["kimi-k3"] > kept["nemotron-3-nano-30b-a3b"] > kept["gpt-oss-20b"] > 0
