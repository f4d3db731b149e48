"""`capplan backtest`, as a user runs it."""

import json
from pathlib import Path

import pytest

from silicon import needs_silicon

ROOT = Path(__file__).parents[2]
BARS = (
    "serving_tpot_median_ape", "serving_tpot_mean_ape", "serving_refused_share",
    "serving_tpot_median_ape_moe", "serving_tpot_mean_ape_moe",
    "serving_tpot_median_ape_dense", "serving_tpot_mean_ape_dense",
    "moe_layer_median_ape", "cycle_ratio_median_ape", "speedup_sign_agreement",
    "speedup_undecided_share", "acceptance_curve_median_ape",
)  # fmt: skip
DENSE = "meta-llama/Llama-3.1-70B"
POINTS = """\
points:
- id: made
  model: Qwen3-32B
  hardware: 1x H200
  engine: vLLM
  batch: 8
  gamma: 3
  verify_tokens: 4
  mean_accepted_len: 9.0
  speedup: 1.4
  measured: speedup
"""


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Shipped rows of a dense model, and one of a model that nobody knows."""
    header, *rows = (ROOT / "published/served_rows.csv").read_text().splitlines()
    kept = [row for row in rows if f",{DENSE}," in row][:4]
    kept.append(kept[0].replace(DENSE, "acme/One"))
    path = tmp_path / "few.csv"
    path.write_text("\n".join([header, *kept, ""]), encoding="utf-8")
    return path


@needs_silicon
def test_json_has_every_figure_and_what_was_refused_has_a_reason(capplan, few, tmp_path):
    points = tmp_path / "points.yaml"
    points.write_text(POINTS, encoding="utf-8")
    ran = capplan("backtest", "--serving", str(few), "--points", str(points), "--format", "json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert all(bar in found for bar in BARS)
    served = [row for row in found["rows"] if row["what"] == "tpot"]
    assert found["serving_rows"] == len(served)
    assert [row["refused"] for row in served if row["refused"]] == ["no such model is known"]
    assert found["serving_refused_share"] == pytest.approx(1 / len(served))
    errors = [abs(row["predicted"] / row["measured"] - 1) for row in served if row["predicted"]]
    assert found["serving_tpot_mean_ape"] == pytest.approx(sum(errors) / len(errors))
    # Nine tokens a round of four that were verified cannot be: refused, not predicted.
    assert found["speedup_sign_agreement"] is None
    assert found["moe_layer_rows"] > 1000
    assert found["moe_layer_median_ape"] < 0.08
    assert found["acceptance_curve_median_ape"] < 0.05


@needs_silicon
def test_tables_in_80_columns(capplan, few):
    ran = capplan("backtest", "--serving", str(few))
    assert ran.returncode == 0, ran.stderr
    assert max(map(len, ran.stdout.splitlines())) <= 80
    for words in ("Absolute errors", "Time per output token", "llama-3.1-70b", "Refused"):
        assert words in ran.stdout


@needs_silicon
def test_complaints_of_all_files_come_together(capplan, tmp_path):
    csv, points = tmp_path / "rows.csv", tmp_path / "points.yaml"
    csv.write_text("id,backend\n", encoding="utf-8")
    points.write_text("points: none\n", encoding="utf-8")
    ran = capplan("backtest", "--serving", str(csv), "--points", str(points))
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert f"{csv}:1" in ran.stderr
    assert "points.yaml:1" in ran.stderr
