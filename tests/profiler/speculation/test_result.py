"""Counts of requests as a table of a profile, and what such a table may not say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from capplan.physics.request_spread import per_request_sd
from capplan.profiler.speculation.result import acceptance
from capplan.records.acceptance import Acceptance, RequestCounts
from capplan.records.caveat import Origin

MEASURED = Origin(kind="measured")


@st.composite
def requests(draw: st.DrawFn) -> list[RequestCounts]:
    positions = draw(st.integers(1, 4))
    found = []
    for _ in range(draw(st.integers(2, 8))):
        rounds = draw(st.integers(1, 60))
        kept = draw(st.lists(st.integers(0, rounds), min_size=positions, max_size=positions))
        kept.sort(reverse=True)
        drafted = draw(st.integers(kept[0], rounds))
        counts = RequestCounts(rounds=rounds, drafted_rounds=drafted, accepted=tuple(kept))
        found.append(counts)
    return found


@given(requests())
def test_any_counts_make_a_table_that_adds_up(counts: list[RequestCounts]) -> None:
    table = acceptance(counts, 0.0, seed=0, origin=MEASURED)
    assert table.rounds == sum(c.rounds for c in counts)
    shares = np.array(table.accepted) / table.rounds
    assert (np.array(table.low_share) <= shares).all()
    assert (shares <= np.array(table.high_share)).all()
    spread = per_request_sd([c.rounds for c in counts], [c.accepted for c in counts])
    assert table.per_request_sd == pytest.approx(spread, abs=1e-4)
    again = Acceptance.model_validate_json(table.model_dump_json(), strict=True)
    assert again == table


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"drafted_rounds": 31}, "drafted_rounds must not exceed rounds"),
        ({"rounds": 29}, "add up"),
        ({"drafted_rounds": 24}, "add up"),
        ({"accepted": [15, 7]}, "add up"),
        ({"accepted": [15], "low_share": None, "high_share": None}, "as many positions"),
    ],
)
def test_totals_that_are_not_those_of_the_requests_are_refused(
    change: dict[str, object], words: str
) -> None:
    counts = [
        RequestCounts(rounds=10, drafted_rounds=5, accepted=(5, 2)),
        RequestCounts(rounds=20, drafted_rounds=20, accepted=(10, 6)),
    ]
    table = acceptance(counts, 0.0, seed=0, origin=MEASURED).model_dump(exclude_none=True)
    table |= {"low_share": (0.0, 0.0), "high_share": (1.0, 1.0)} | {
        key: tuple(value) if isinstance(value, list) else value for key, value in change.items()
    }
    with pytest.raises(ValidationError, match=words):
        Acceptance.model_validate(table)
