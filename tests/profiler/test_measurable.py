"""Models whose steps the stand-in layers would not take as long for are refused."""

from pathlib import Path

import pytest

from capplan.errors import MeasureError
from capplan.files.reader import read
from capplan.profiler.measurable import check
from capplan.records.architecture import Architecture

MODELS = Path(__file__).parents[2] / "models"


def model(name: str) -> Architecture:
    return read(MODELS / f"{name}.yaml", Architecture)


@pytest.mark.parametrize("name", ["bench-moe-128e", "qwen3-30b-a3b", "deepseek-v3", "qwen2.5-72b"])
def test_plain_models_can_be_measured(name: str) -> None:
    check(model(name))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gpt-oss-20b", "attention sinks, attention windows, biases of experts, output biases"),
        ("qwen3-next-80b-a3b", "layers of kind delta_net, output gates"),
        ("deepseek-v3.2", "sparse attention"),
        ("deepseek-v4.1-flash", "lookup tables, several residual streams"),
        ("nemotron-3-super-120b-a12b", "without a gate, latent experts, layers of kind mamba"),
        ("gemma-4-31b", "keys that are values"),
        ("minimax-m2.5", "norms over all heads"),
        ("mimo-v2-flash", "values of another size than keys"),
        ("glm-5.3-flash", "attention without positions"),
    ],
)
def test_what_the_layers_do_not_have_is_named(name: str, what: str) -> None:
    with pytest.raises(MeasureError, match="cannot be measured yet") as caught:
        check(model(name))
    assert what in str(caught.value)
