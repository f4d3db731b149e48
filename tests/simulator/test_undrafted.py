"""Requests that go without drafts beside others that draft, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.simulator.replica import simulate
from simulator.engines import engine, requests

STEP_S, SAVED_S, DRAFTS = 0.010, 0.002, 3
KEPT = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
"""Of the requests without drafts, and of those whose drafts are all kept."""


def engaged(**settings):
    """Rounds of 10 ms, less 2 ms for each sequence that goes without drafts; prompts are free."""
    made = engine(
        fixed_s=STEP_S,
        batch_s=0.0,
        context_s=0.0,
        token_s=0.0,
        verify_s=0.0,
        drafting_s=0.0,
        draft_tokens=range(DRAFTS + 1),
        variant_by_batch=np.full(5, DRAFTS),
        max_batch=4,
        **settings,
    )
    saved = np.full((DRAFTS + 1, made.max_batch + 1), SAVED_S)
    return replace(made, saved_s=saved, draft_s=saved * np.arange(made.max_batch + 1))


def drawn(kinds, *, prompt=1, output=41, undrafted=0):
    """As many requests at once, each of a kind, without luck."""
    made = requests(
        len(kinds), prompt=prompt, output=output, arrival_s=[1.0] * len(kinds), kept=KEPT
    )
    return replace(
        made,
        kind=np.array(kinds),
        noise=np.zeros(len(kinds)),
        undrafted_group=undrafted,
    )


def test_alone_a_request_without_drafts_steps_a_token_at_a_time_and_faster():
    found = simulate(engaged(), drawn([0]), 1.0)
    assert found.rounds[0] == 40
    assert found.decode_s[0] == pytest.approx(40 * (STEP_S - SAVED_S))
    assert found.draft_s[0] == 0


def test_a_request_whose_drafts_are_kept_ends_four_times_as_soon_beside_it():
    found = simulate(engaged(), drawn([0, 1]), 1.0)
    assert found.rounds.tolist() == [40, 10]
    # Both step together, the one without drafts shortening each step; then it steps alone.
    assert found.decode_s == pytest.approx([40 * (STEP_S - SAVED_S), 10 * (STEP_S - SAVED_S)])
    # Drafting is of the one that drafts, while it runs.
    assert found.draft_s == pytest.approx([10 * SAVED_S, 10 * SAVED_S])


def test_with_no_such_group_a_kind_that_keeps_nothing_drafts_all_the_same():
    found = simulate(engaged(), drawn([0], undrafted=-1), 1.0)
    assert found.decode_s[0] == pytest.approx(40 * STEP_S)


def test_drafts_that_are_not_there_leave_the_budget_to_prompts():
    """While two decode, six of a step's eight tokens are a prompt's; with drafts none is."""
    without, drafting = (
        replace(
            drawn([kind, kind, kind], output=401),
            arrival_s=np.array([1.0, 1.0, 1.05]),
            prefill_tokens=np.array([1.0, 1.0, 40.0]),
        )
        for kind in (0, 1)
    )
    step_s = STEP_S - 2 * SAVED_S
    chunks = simulate(engaged(budget=8), without, 1.0).ttft_s[2] / step_s
    assert 7 <= chunks <= 8
    # Answers of 400 tokens after the first at four a round: their drafts are in the way for 1 s.
    assert simulate(engaged(budget=8), drafting, 1.0).ttft_s[2] == pytest.approx(0.95, abs=0.011)


@pytest.mark.parametrize(("undrafted", "preempted"), [(0, False), (-1, True)])
def test_drafts_that_are_not_there_take_no_cache(undrafted, preempted):
    """Two answers of 41 after prompts of 60 fill 202 tokens, three drafts each not counted."""
    load = drawn([0, 0], prompt=60, undrafted=undrafted)
    found = simulate(engaged(cache_tokens=202.0), load, 1.0)
    assert (found.preemptions.sum() > 0) == preempted
