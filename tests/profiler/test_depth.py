"""What fits: sums by hand, and that more memory never means fewer layers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import MeasureError
from capplan.files.reader import read
from capplan.profiler.depth import WEIGHTS, Room, fitting, sample
from capplan.profiler.grid import Grid, Work
from capplan.records.architecture import Architecture

MODELS = Path(__file__).parents[2] / "models"
DEEPSEEK = read(MODELS / "deepseek-v3.yaml", Architecture)
QWEN = read(MODELS / "qwen3-0.6b.yaml", Architecture)


def layers(architecture: Architecture) -> list[int]:
    return [kind.layers for kind in architecture.layer_kinds]


def test_a_small_model_is_measured_whole() -> None:
    assert sample(QWEN, Room(100e9, 2), None) == QWEN


def test_of_a_large_model_every_kind_is_there() -> None:
    # One dense and ten sparse layers of DeepSeek-V3 in bf16: embedding and head 3.7 GB, a sparse
    # layer 23 GB.
    chosen = layers(sample(DEEPSEEK, Room(135e9, 2), None))
    assert chosen == [1, 3]
    assert layers(sample(DEEPSEEK, Room(60e9, 2), None)) == [1, 1]


def test_a_model_too_large_for_one_layer_is_refused_with_its_size() -> None:
    with pytest.raises(MeasureError, match=r"1 \+ 1 layers of deepseek-v3 take 2\.\d+e\+10 bytes"):
        sample(DEEPSEEK, Room(10e9, 2), None)
    with pytest.raises(MeasureError, match="3 \\+ 58 layers"):
        sample(DEEPSEEK, Room(140e9, 2), layers=99)


@pytest.mark.parametrize(
    ("usable_bytes", "layers", "remedy"),
    [
        # In bf16 one layer with the embedding is 0.34 GB and all are 1.19 GB; in fp32 twice that.
        (0.5e9, 1, "Choose --dtype bf16 or a device with more memory"),
        (0.3e9, 1, "Choose a device with more memory"),
        (2e9, 28, "Choose fewer --layers or --dtype bf16 or a device"),
        (1e9, 28, "Choose fewer --layers or a device"),
        (0.3e9, 28, "Choose a device"),
    ],
)
def test_only_what_would_help_is_advised(usable_bytes: float, layers: int, remedy: str) -> None:
    with pytest.raises(MeasureError) as caught:
        sample(QWEN, Room(usable_bytes, 4), layers)
    assert remedy in str(caught.value)
    assert f"of {layers} layer{'s' if layers > 1 else ''} of" in str(caught.value)


def test_a_number_of_layers_holds_for_each_kind_up_to_what_there_is() -> None:
    assert layers(sample(DEEPSEEK, Room(500e9, 2), layers=5)) == [3, 5]
    assert layers(sample(DEEPSEEK, Room(1e13, 2), None, most=2)) == [2, 2]


@given(st.floats(30e9, 2e12), st.floats(1, 3))
def test_more_memory_never_means_fewer_layers(usable_bytes: float, factor: float) -> None:
    less = sample(DEEPSEEK, Room(usable_bytes, 2), None)
    more = sample(DEEPSEEK, Room(factor * usable_bytes, 2), None)
    assert all(a <= b for a, b in zip(layers(less), layers(more), strict=True))
    if layers(less) != [1, 1]:
        assert Room(0, 2).weights_bytes(less) <= WEIGHTS * usable_bytes


def test_cells_that_do_not_fit_are_the_large_ones() -> None:
    works = Grid((1, 8, 64), (1000, 100_000), 1, (16,), (1,)).works()
    kept = fitting(QWEN, Room(20e9, 2), works)
    # 114,688 bytes a token: 100,000 tokens of one sequence are 11.5 GB, of eight too many.
    assert Work(1, 100_000, 2) in kept
    assert Work(64, 1000, 2) in kept
    assert Work(8, 100_000, 1) not in kept


def test_a_device_that_holds_no_cell_is_refused() -> None:
    works = Grid((64,), (100_000,), 1, (16,), (1,)).works()
    with pytest.raises(MeasureError, match="smallest cell of steps"):
        fitting(QWEN, Room(5e9, 2), works)
