"""Deployments of published rounds: found, composed or estimated, refused by reason."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.cli.backtest_rounds import steps
from capplan.cli.backtest_steps import ComposedSteps, EstimatedSteps
from capplan.errors import InputError
from capplan.physics.load import decode_load
from capplan.records.published import PublishedRound
from silicon import needs_silicon

MOESD = PublishedRound(
    name="moesd",
    place="file:1",
    source=None,
    model="Qwen2-57B-A14B-Instruct",
    sparse=True,
    gpu="A800",
    gpus=2,
    engine="vllm",
    weights=None,
    batches=(8,),
    passes=3,
    beams=1,
    query_tokens=4,
    tokens_per_round=2.8,
    drafter="Qwen2-0.5B",
    context_tokens=None,
    plain_s=None,
    speed_up=1.5,
    cycle_ratio=None,
)
EAGLE = replace(MOESD, model="Qwen3-30B-A3B bf16", gpu="H100", engine="sglang", drafter="eagle3")
DECODE = decode_load([1.0, 8.0, 64.0], 1024, 1)
VERIFY = decode_load([1.0, 8.0, 64.0], 1024, 4)


def test_a_model_without_tables_is_estimated() -> None:
    found = steps(MOESD)
    assert isinstance(found, EstimatedSteps)
    assert (found.origin, found.sparse) == ("estimated", True)
    plain, longer = (found.step_s(load, "assumed") for load in (DECODE, VERIFY))
    assert (longer > plain).all()
    assert (np.diff(plain) > 0).all()
    alike, independent = (found.step_s(VERIFY, one) for one in ("alike", "independent"))
    assert alike[0] < independent[0]
    # 0.99 GB of weights on two A100s of 2 TB/s each take a quarter of a millisecond, launches more.
    each = found.draft_s(VERIFY, 1, 1)[0]
    assert 0.25e-3 < each < 3e-3
    assert found.draft_s(VERIFY, 3, 1)[0] == pytest.approx(3 * each)


@needs_silicon
@pytest.mark.silicon
def test_a_model_with_tables_is_composed() -> None:
    found = steps(EAGLE)
    assert isinstance(found, ComposedSteps)
    assert (found.origin, found.sparse) == ("composed", True)
    assert (found.step_s(VERIFY, "alike") <= found.step_s(VERIFY, "independent")).all()
    assert (found.draft_s(VERIFY, 3, 1) > 0).all()


def test_ngrams_cost_no_kernel_time() -> None:
    found = steps(replace(MOESD, drafter="ngram"))
    assert found.draft_s(VERIFY, 3, 1).tolist() == [0, 0, 0]


def test_an_eagle_head_is_drawn_as_a_layer_of_the_model() -> None:
    found = steps(replace(MOESD, model="Mixtral-8x7B-Instruct", drafter="eagle"))
    assert isinstance(found, EstimatedSteps)
    assert found.draft is not None
    assert found.draft.model.layer_kinds[0].layers == 1
    assert found.draft_s(VERIFY, 1, 1)[0] < 0.1 * found.step_s(DECODE, "assumed")[0]


@pytest.mark.parametrize(
    ("one", "rule"),
    [
        (replace(MOESD, gpu="Gaudi"), "no rates"),
        (replace(MOESD, gpus=16), "several nodes"),
        (replace(MOESD, gpus=8), "must divide"),
        (replace(MOESD, model="Laguna S 2.1"), "shape is not known"),
        (replace(MOESD, drafter="mtp"), "shape is not known"),
        (replace(MOESD, drafter="Strange-7B"), "shape is not known"),
    ],
)
def test_what_is_not_known_is_refused(one: PublishedRound, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        steps(one)
