"""`capplan compose --routing`: experts chosen as they were measured."""

from pathlib import Path

import pytest

from capplan.cli.compose_run import Choice, compose
from capplan.cli.measured_routing import measured_routing
from capplan.errors import InputError
from capplan.files.reader import read
from capplan.files.writer import write_record
from capplan.physics.experts import distinct_experts
from capplan.records.architecture import Architecture
from capplan.records.caveat import Origin
from capplan.records.routing import (
    DistinctCell,
    DistinctTable,
    LayerGroup,
    Routing,
    WorkloadRouting,
)
from silicon import needs_silicon

ROOT = Path(__file__).parents[2]
LAGS = (0.381, 0.329, 0.301, 0.299)


def group(layers: int, across: float, overlap: tuple[float, ...]) -> LayerGroup:
    cells = DistinctTable(rows=(DistinctCell(batch=1, query_tokens=1, distinct_experts=8.0),))
    return LayerGroup(
        layers=layers, across=across, overlap=overlap, popularity=(1.0,) * 11, distinct=cells
    )


def kept(path: Path, **workloads: dict[str, LayerGroup]) -> Path:
    found = {
        name: WorkloadRouting(sequences=20, positions=2000, layer_groups=groups)
        for name, groups in workloads.items()
    }
    write_record(
        path,
        Routing(experts=128, experts_per_token=8, workloads=found, origin=Origin(kind="measured")),
    )
    return path


@pytest.fixture
def qwen() -> Architecture:
    return read(ROOT / "models" / "qwen3-30b-a3b.yaml", Architecture)


def test_layers_count_as_many_times_as_there_are(qwen, tmp_path):
    groups = {
        "early": group(1, 0.2, tuple(4 * lag - 3 * 0.2 for lag in (0.4, 0.3, 0.25, 0.25))),
        "late": group(3, 0.2, (0.2,) * 4),
    }
    found = measured_routing(str(kept(tmp_path / "r.yaml", code=groups)), qwen, 4)
    assert found.across == pytest.approx(0.2)
    assert found.by_lag == pytest.approx((0.4, 0.3, 0.25, 0.25))


def test_the_width_that_cohere_published_comes_out(qwen, tmp_path):
    path = kept(tmp_path / "r.yaml", code={"middle": group(9, 0.118, LAGS)})
    found = measured_routing(str(path), qwen, 4)
    # 20.36 distinct experts of four tokens, by Cohere.
    assert float(distinct_experts(found, 1, 4)) == pytest.approx(20.36, rel=0.03)


@pytest.mark.parametrize(
    ("model", "file", "drafts", "words"),
    [
        ("qwen3-30b-a3b", "r.yaml", 4, "must name a workload of r.yaml: code, chat"),
        ("qwen3-30b-a3b", "r.yaml:prose", 4, "found prose"),
        ("qwen3-30b-a3b", "r.yaml:chat", 5, "needs overlaps at lags up to 5, found 4"),
        ("deepseek-v3", "r.yaml:chat", 4, "chooses 8 of 256 experts, found 8 of 128"),
        ("llama-3.1-70b", "r.yaml:chat", 4, "has no routed experts"),
        ("qwen3-30b-a3b", "none.yaml", 4, "none.yaml"),
        ("qwen3-30b-a3b", "r.yaml:odd", 2, "no way of choosing experts has these overlaps"),
    ],
)
def test_what_a_file_does_not_hold_is_named(model, file, drafts, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    groups = {"early": group(3, 0.118, LAGS)}
    kept(
        Path("r.yaml"), code=groups, chat=groups,
        odd={"early": group(3, 0.07, (0.99, 0.07, 0.07, 0.07))},
    )  # fmt: skip
    architecture = read(ROOT / "models" / f"{model}.yaml", Architecture)
    with pytest.raises(InputError) as refused:
        measured_routing(file, architecture, drafts)
    assert words in str(refused.value)


@needs_silicon
def test_more_overlap_makes_verification_cheaper_and_is_said(tmp_path):
    steps = {}
    for name, overlap in (("little", 0.13), ("much", 0.6)):
        path = kept(tmp_path / f"{name}.yaml", code={"early": group(9, 0.118, (overlap,) * 8)})
        choice = Choice(on="h200-sxm:1", routing=str(path), coarse=True)
        profile = compose("qwen3-30b-a3b", choice).composed.profile
        rows = profile.steps.rows
        steps[name] = {(c.batch, c.context_tokens, c.query_tokens): c.step_s for c in rows}
        said = [one.text for one in profile.caveats if one.about == "routing"]
        across = "tokens of different sequences share 12% of their experts"
        within = f"those of one sequence {overlap:.0%}"
        assert said == [f"As it was measured, {across}, {within}. Other texts may differ."]
    assert steps["little"].keys() == steps["much"].keys()
    for (batch, _, query), time_s in steps["little"].items():
        other_s = steps["much"][batch, _, query]
        if query == 1:
            assert other_s == pytest.approx(time_s, rel=1e-3)
        elif batch <= 8:
            assert other_s < time_s
