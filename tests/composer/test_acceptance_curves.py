"""Published curves as shares by position: against the curves and what must hold of them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.composer.acceptance import CHAT_OVER_CODING, acceptance, fading, shares
from capplan.files.reader import read
from capplan.records.caveat import Source
from capplan.records.known_drafter import AcceptanceCurve, KnownDrafter

ROOT = Path(__file__).parents[2]
KNOWN = [read(path, KnownDrafter) for path in sorted((ROOT / "drafters").glob("*.yaml"))]
CURVES = [curve for one in KNOWN for curve in one.curves]


def tokens(kept: tuple[float, ...]) -> list[float]:
    return list(1 + np.cumsum(kept))


@pytest.mark.parametrize("known", [one for one in KNOWN if one.curves], ids=lambda one: one.name)
def test_shares_bring_the_published_tokens_a_round_back(known: KnownDrafter) -> None:
    # Curves were published to two digits, and one that falls by its noise is cut to fall no more.
    for curve in known.curves:
        brought = 1 + np.cumsum(shares(curve.tokens_per_round))
        np.testing.assert_allclose(brought, curve.tokens_per_round, rtol=0.065)
        assert brought[0] == pytest.approx(curve.tokens_per_round[0])


def test_kimis_curve_is_brought_back_exactly() -> None:
    # It rises by less at every position, so nothing is cut.
    own = next(one for one in KNOWN if one.name == "eagle3-kimi-k2").curves
    found = acceptance(own, CURVES)["coding"]
    np.testing.assert_allclose(
        tokens(found.accepted_share), [1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77], atol=2e-3
    )
    assert found.origin.kind == "imported"
    # The lower end lies below the curve without thinking, 2.75 tokens at 3 drafts.
    assert tokens(found.low_share)[2] < 2.75


def test_what_nobody_published_is_assumed_between_the_published_ends() -> None:
    found = acceptance((), CURVES)
    assert {one.origin.kind for one in found.values()} == {"assumed"}
    coding = found["coding"]
    at_three = [curve.tokens_per_round[2] for curve in CURVES]
    assert tokens(coding.low_share)[2] < min(at_three)
    assert tokens(coding.high_share)[2] == pytest.approx(max(at_three), abs=0.02)
    assert min(at_three) < tokens(coding.accepted_share)[2] < max(at_three)


def test_chat_wins_less_than_coding_by_the_published_part() -> None:
    kept = np.array([0.8, 0.6, 0.45, 0.33, 0.25, 0.18, 0.13, 0.1])
    chat = fading(kept, CHAT_OVER_CODING)
    assert np.sum(chat[:7]) == pytest.approx(CHAT_OVER_CODING * np.sum(kept[:7]))
    assert chat[0] / kept[0] > chat[6] / kept[6]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_any_curve_gives_a_record_that_holds_together(steps: list[float]) -> None:
    rising = tuple(1 + np.cumsum(steps))
    curve = AcceptanceCurve(
        workload="coding",
        tokens_per_round=rising,
        conditions="none",
        source=Source(what="made up", where="here"),
    )
    for one in acceptance((curve,), ()).values():
        low, middle, high = one.low_share, one.accepted_share, one.high_share
        assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))
        assert list(middle) == sorted(middle, reverse=True)
