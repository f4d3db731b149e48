import pytest

from capplan.errors import InputError
from capplan.importers.published.curves import read_curves

CURVE = """\
points: []
series:
- id: one
  kind: acceptance_vs_gamma
  model: some MTP
  hardware: B300
  engine: vLLM
  columns: [gamma, mean_accepted_len]
  rows: [[2, 2.4], [1, 1.8], [3, 2.8]]
- id: other
  kind: moe_layer_latency_vs_tokens
"""


def read(tmp_path, text):
    path = tmp_path / "points.yaml"
    path.write_text(text, encoding="utf-8")
    return read_curves(path)


def test_a_curve_is_read_in_order_of_drafts(tmp_path):
    (curve,) = read(tmp_path, CURVE)
    assert curve.tokens_per_round == (1.8, 2.4, 2.8)
    assert (curve.name, curve.engine, curve.at_once) == ("one", "vllm", False)


def test_drafters_of_a_whole_block_are_marked(tmp_path):
    (curve,) = read(tmp_path, CURVE.replace("some MTP", "some DSpark"))
    assert curve.at_once


def test_curves_with_a_gap_or_a_late_start_are_left_out(tmp_path):
    assert read(tmp_path, CURVE.replace("[2, 2.4], ", "")) == ()
    assert read(tmp_path, CURVE.replace("[1, 1.8], ", "")) == ()


def test_files_without_series_have_no_curves(tmp_path):
    assert read(tmp_path, "points: []\n") == ()


@pytest.mark.parametrize("rows", ["[[1, many]]", "[1, 2]", "7", "[[1, 0.5]]"])
def test_bad_rows_are_named_by_line(tmp_path, rows):
    with pytest.raises(InputError, match=r"points\.yaml:\d+: rows: must have columns"):
        read(tmp_path, CURVE.replace("[[2, 2.4], [1, 1.8], [3, 2.8]]", rows))
