"""What is said of drafts longer than those measured."""

import pytest

from capplan.records.acceptance import (
    Acceptance,
    MeasuredAcceptance,
    RequestCounts,
    RequestTable,
)
from capplan.records.caveat import Origin
from capplan.report.acceptance import report

KEPT = (800, 640, 512)


def measured(kind: str, kept: tuple[int, ...]) -> MeasuredAcceptance:
    request = RequestCounts(rounds=1000, drafted_rounds=1000, accepted=kept)
    counted = Acceptance(
        rounds=1000,
        drafted_rounds=1000,
        accepted=kept,
        per_request_sd=0.0,
        origin=Origin(kind="measured"),
        requests=RequestTable(rows=(request,)),
    )
    return MeasuredAcceptance(
        drafter="small", description="a model", kind=kind, acceptance={"chat": counted}
    )


def said(found: MeasuredAcceptance) -> list[str]:
    return [line for note in report(found).notes for line in note.lines if "carried on" in line]


def test_a_chance_that_does_not_drift_is_carried_on() -> None:
    # 1 + 0.8 + 0.64 + 0.512 + 0.4096 + 0.32768; a hundredth a position is the least error stated.
    (line,) = said(measured("autoregressive", KEPT))
    assert line.endswith(": 4 drafts 3.36 within 1%, 5 drafts 3.69 within 2%.")


@pytest.mark.parametrize(
    ("kind", "kept"), [("ngram", KEPT), ("parallel", KEPT), ("autoregressive", KEPT[:2])]
)
def test_nothing_is_said_where_nothing_is_known(kind: str, kept: tuple[int, ...]) -> None:
    assert said(measured(kind, kept)) == []
