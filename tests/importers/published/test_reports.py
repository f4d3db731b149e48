"""User reports: several points under one heading."""

from pathlib import Path

import pytest

from capplan.errors import InputError
from capplan.importers.published import read_reports

TEXT = """
reports:
- id: R01
  link: https://example.org/issue
  model: Qwen3-30B-A3B bf16
  hw: 2xH100
  engine: SGLang
  method: EAGLE3 (DenseHead)
  tp: 2
  points:
  - {bs: 1, gamma: 3, tree: 1/4, AL: 1.86, base: 222.47, spec: 159.78, speedup: 0.72}
  - {bs: 4, gamma: 3, tree: 3/8, AL: 2.27, spec: 426.46, speedup: 0.75}
  - {bs: 8, gamma: 3}
  baseline_curve_tok_s:
    4: 566.21
- id: R02
  model: GLM-4.7-Flash
  method: nextn k=1
  speedup: 1.04-1.06
- id: R03
  lesson: no number
"""


def test_points_of_a_report_share_what_its_heading_says(tmp_path: Path) -> None:
    path = tmp_path / "reports.yaml"
    path.write_text(TEXT, encoding="utf-8")
    chain, tree, alone = read_reports(path)
    assert (chain.name, chain.gpu, chain.gpus, chain.engine) == ("R01.1", "H100", 2, "sglang")
    assert (chain.drafter, chain.weights, chain.batches) == ("eagle3", "bf16", (1,))
    assert (chain.passes, chain.beams, chain.query_tokens) == (3, 1, 4)
    assert chain.plain_s == pytest.approx(1 / 222.47)
    assert (tree.beams, tree.query_tokens, tree.tokens_per_round) == (3, 8, 2.27)
    assert tree.plain_s == pytest.approx(4 / 566.21)
    assert (alone.name, alone.batches) == ("R02.1", ())
    assert alone.speed_up == pytest.approx(1.05)


def test_bad_points_are_named_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "reports.yaml"
    path.write_text("reports:\n- id: R\n  points:\n  - 4\n  - bs: yes\n- model: x\n", "utf-8")
    with pytest.raises(InputError) as refused:
        read_reports(path)
    assert sorted(one.place.rsplit(":", 1)[1] for one in refused.value.complaints) == list("456")
