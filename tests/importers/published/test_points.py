"""Published points: what is read of them, in numbers and in words, and what is refused."""

from pathlib import Path

import pytest

from capplan.errors import InputError
from capplan.importers.published import read_points
from capplan.importers.published.words import batches, drafter, engine, gpu, tree, weights

PEAK = """
points:
- id: peak
  source_url: https://example.org/paper
  model: Qwen2-57B-A14B-Instruct
  experts: 64
  hardware: 2xA800 (inferred)
  engine: vLLM (CUDA graph)
  batch: null
  gamma: 2
  verify_tokens: 3
  mean_accepted_len: 2.82
  speedup: 1.63
  t_ar: 18.9
  measured: PEAK speedup over the batch sweep 1..100, temperature 0, draft Qwen2-0.5B
  derived: {cycle_over_decode: 1.73}
  extra: {context: 4K}
  note: unit not visible
- id: tree
  model: Qwen3-30B-A3B
  hardware: A100-SXM-80GB
  engine: "SGLang EAGLE-3 (tree: 4 steps, top-k 8, 32 draft tokens)"
  batch: 1
  verify_tokens: 32
  mean_accepted_len: 3.65
  t_ar: 144.46
  speedup: 2.1-2.3
  measured: AR 144.46, EAGLE-3 176.34 tok/s
- id: no ratio
  model: Qwen3-30B-A3B
  batch: 1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "points.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_peak_over_a_sweep_is_read_with_all_its_facts(tmp_path: Path) -> None:
    found, _ = read_points(written(tmp_path, PEAK))
    assert (found.name, found.gpu, found.gpus, found.engine) == ("peak", "A800", 2, "vllm")
    assert found.batches == (1, 2, 4, 8, 16, 32, 64, 100)
    assert (found.passes, found.beams, found.query_tokens) == (2, 1, 3)
    assert (found.tokens_per_round, found.speed_up, found.cycle_ratio) == (2.82, 1.63, 1.73)
    assert (found.drafter, found.context_tokens, found.sparse) == ("Qwen2-0.5B", 4096, True)
    # 18.9 of what is not said.
    assert found.plain_s is None
    assert found.place.endswith("points.yaml:3")


def test_a_tree_is_read_by_its_steps_and_what_it_verifies(tmp_path: Path) -> None:
    _, found = read_points(written(tmp_path, PEAK))
    assert (found.passes, found.beams, found.query_tokens) == (4, 8, 32)
    assert found.drafter == "eagle3"
    assert found.speed_up == pytest.approx(2.2)
    assert found.plain_s == pytest.approx(1 / 144.46)


def test_bad_rows_are_all_named_by_their_line(tmp_path: Path) -> None:
    text = "points:\n- id: a\n  speedup: -1\n- id: b\n  gamma: 2.5\n- 7\n- speedup: true\n"
    with pytest.raises(InputError) as refused:
        read_points(written(tmp_path, text))
    places = [complaint.place.rsplit(":", 1)[1] for complaint in refused.value.complaints]
    assert sorted(places) == ["3", "5", "6", "7", "7"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("points: 3", "list"),
        ("a: [", "not YAML"),
        ("- 1", "list"),
        ("", "list"),
        ("a: &b [1]\npoints: *b", "aliases"),
        ("? [1, 2]\n: 3", "list"),
        ("points: !!python/object:os.system {}", "list"),
        ("points: " + "[" * 3000, "not YAML"),
    ],
)
def test_files_without_points_are_refused(tmp_path: Path, text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        read_points(written(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_points(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8xH200", ("H200", 8)),
        ("H20 TP4", ("H20", 4)),
        ("RTX 5090 32GB", ("RTX 5090", 1)),
        ("4xL40 (inferred)", ("L40", 4)),
        ("1xL40S", ("L40S", 1)),
        ("AMD Strix Halo", (None, 1)),
        (None, (None, 1)),
    ],
)
def test_gpus_are_known_by_their_names(text: str | None, expected: object) -> None:
    assert gpu(text) == expected


def test_words_that_name_methods() -> None:
    assert engine("TensorRT-LLM 1.0") == "trtllm"
    assert engine("MLX") == "mlx"
    assert drafter("", "SGLang NextN") == "mtp"
    assert drafter("Lookahead 94.86") == "ngram"
    assert drafter("plain decoding") is None
    assert weights("DeepSeek-R1-FP4") == "nvfp4"
    assert tree("chain of 3") is None
    assert batches("4-16", None) == (4, 8, 16)
    assert batches("2 per rank", None) == ()
