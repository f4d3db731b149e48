"""Rounds predicted from facts, checked where arithmetic gives the answer."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pytest

from capplan.backtester.pairs import agreement, decided, once, pairs, rows, undecided
from capplan.backtester.rounds import OTHER_HOST_S, Overlap, RoundResult, host_s, missing, predict
from capplan.errors import Complaint, InputError
from capplan.physics.load import Load
from capplan.physics.surface import Array
from capplan.records.published import PublishedRound

ROUND = PublishedRound(
    name="one",
    place="file:1",
    source="https://example.org",
    model="m",
    sparse=False,
    gpu="H100",
    gpus=1,
    engine="vllm",
    weights=None,
    batches=(4,),
    passes=3,
    beams=1,
    query_tokens=4,
    tokens_per_round=3.0,
    drafter="ngram",
    context_tokens=None,
    plain_s=None,
    speed_up=2.0,
    cycle_ratio=None,
)


@dataclass(frozen=True)
class Straight:
    """A step costs 10 ms and a little a token; drafting as much a pass; both known exactly."""

    token_s: float = 0.0
    pass_s: float = 0.0
    alike_s: float = 0.0
    """What alike routing saves of a verification."""
    origin: Literal["composed", "estimated"] = "composed"
    sparse: bool = False

    def step_s(self, load: Load, overlap: Overlap) -> Array:
        saved = self.alike_s * (load.query_tokens > 1) * (overlap == "alike")
        return np.asarray(10e-3 + self.token_s * load.tokens - saved)

    def draft_s(self, load: Load, passes: int, beams: int) -> Array:
        return np.full(load.batch.shape, passes * beams * self.pass_s)


def predicted(one: PublishedRound, steps: Straight) -> RoundResult:
    found = predict(one, steps)
    assert found is not None
    return found


def test_a_round_is_verification_drafting_and_host_over_a_plain_step() -> None:
    # Decode 10 + 0.4 ms, verification 10 + 1.6 ms, three passes of 1 ms, host 1 ms.
    found = predicted(ROUND, Straight(token_s=1e-4, pass_s=1e-3))
    assert found.cycle.value == pytest.approx((11.6 + 3 + 1) / 10.4)
    assert found.speed_up is not None
    assert found.speed_up.value == pytest.approx(3.0 * 10.4 / 15.6)
    assert found.speed_up.low < found.speed_up.value < found.speed_up.high


def test_beams_of_a_tree_cost_what_they_cost() -> None:
    chain = predicted(ROUND, Straight(pass_s=1e-3))
    tree = predicted(replace(ROUND, beams=4), Straight(pass_s=1e-3))
    assert tree.cycle.value - chain.cycle.value == pytest.approx(3 * 3 * 1e-3 / 10e-3)


def test_of_several_batches_the_best_is_predicted() -> None:
    # A token costs the same in all, so the smallest batch has the cheapest verification.
    found = predicted(replace(ROUND, batches=(1, 2, 64)), Straight(token_s=1e-4))
    assert found.cycle.value == pytest.approx((10.4 + 1) / 10.1)


def test_gaps_of_a_plain_step_that_was_published_do_not_grow() -> None:
    # 20 ms were measured, 10.4 predicted: verification has the same 9.6 ms of gaps.
    found = predicted(replace(ROUND, plain_s=20e-3), Straight(token_s=1e-4))
    assert found.verify.value == pytest.approx(21.2 / 20)
    assert found.cycle.value == pytest.approx((21.2 + 1) / 20)
    # Faster than predicted: the ratio stays.
    found = predicted(replace(ROUND, plain_s=5.2e-3), Straight(token_s=1e-4))
    assert found.verify.value == pytest.approx(11.6 / 10.4)


def test_passes_of_a_model_wait_longer_for_their_host_than_those_of_a_head() -> None:
    head, model = (host_s(replace(ROUND, drafter=name)) for name in ("mtp", "Qwen2-0.5B"))
    assert host_s(ROUND).tolist() == list(OTHER_HOST_S)
    assert (host_s(ROUND) <= head).all()
    assert (head < model).all()
    assert (np.diff(model) > 0).all()


def test_what_alike_routing_saves_widens_the_range_downwards() -> None:
    sure = predicted(ROUND, Straight(token_s=4e-4))
    unsure = predicted(ROUND, Straight(token_s=4e-4, alike_s=4e-3))
    assert unsure.cycle.value == sure.cycle.value
    assert unsure.cycle.low < sure.cycle.low
    assert unsure.cycle.high == pytest.approx(sure.cycle.high)


def test_verification_is_never_shorter_than_a_step() -> None:
    found = predicted(ROUND, Straight(alike_s=8e-3))
    assert found.verify.low == 1
    assert found.cycle.low > 1


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"model": None}, "model not said"),
        ({"gpu": None}, "GPU not said"),
        ({"batches": ()}, "batch not said"),
        ({"passes": 0}, "draft length not said"),
        ({"query_tokens": None}, "draft length not said"),
        ({"drafter": None}, "drafter not said"),
        ({"tokens_per_round": None}, "tokens per round not said"),
        ({"tokens_per_round": 4.5}, "more tokens per round than were verified"),
        ({}, None),
        ({"tokens_per_round": None, "cycle_ratio": 1.5}, None),
    ],
)
def test_facts_that_are_missing_are_named(change: dict[str, Any], fact: str | None) -> None:
    assert missing(replace(ROUND, **change)) == fact


def test_signs_are_counted_over_pairs_that_the_range_decides() -> None:
    def known(one: PublishedRound) -> Straight:
        if one.model == "strange":
            raise InputError([Complaint("backtest", "model", "its shape is not known")])
        return Straight()

    # A cycle of 1.1 with a range of about 0.15: gains of 2.7 and losses of 0.7 are decided.
    told = [
        replace(ROUND, name="gain", speed_up=2.0),
        replace(ROUND, name="wrong", speed_up=0.9),
        replace(ROUND, name="loss", speed_up=0.8, tokens_per_round=1.0 / 1.4, engine="x"),
        replace(ROUND, name="near", speed_up=1.2, tokens_per_round=1.1),
        replace(ROUND, name="level", speed_up=1.0),
        replace(ROUND, name="unknown", model="strange"),
        replace(ROUND, name="silent", drafter=None),
    ]
    found = rows(told, known)
    gains = {row.source: row for row in found if row.what == "speed_up"}
    # A measured 1.0 and what was refused do not count.
    assert [row.source for row in pairs(found)] == ["gain", "wrong", "loss", "near"]
    assert [decided(row) for row in pairs(found)] == [True, True, True, False]
    assert agreement(found) == pytest.approx(2 / 3)
    assert undecided(found) == pytest.approx(1 / 4)
    assert gains["unknown"].refused == "model: its shape is not known"
    assert gains["silent"].refused == "drafter not said"
    assert gains["silent"].predicted is None
    cycles = {row.source: row for row in found if row.what == "cycle_ratio"}
    assert cycles["gain"].measured == pytest.approx(1.5)
    assert cycles["gain"].error == pytest.approx(1.1 / 1.5 - 1)


def test_without_pairs_there_is_no_figure() -> None:
    assert agreement(()) is None
    assert undecided(()) is None


def test_reports_that_repeat_a_point_count_once() -> None:
    point = replace(ROUND, speed_up=0.718)
    again, other = replace(ROUND, speed_up=0.72), replace(ROUND, speed_up=0.8)
    unsourced = replace(ROUND, source=None, speed_up=0.718)
    assert once([point, point], [again, other, unsourced]) == (point, point, other, unsourced)
