"""What is handed to the simulator is what the profile and the forecast say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.physics import acceptance
from capplan.planner import policies
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.demand import demand
from capplan.planner.rehearsal import engine, requests
from capplan.records.acceptance import Acceptance
from straight import ASSUMED, make_forecast, make_profile

PROFILE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.05 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
    spread=0.1,
)


def solved(policy: str, profile=PROFILE, **forecast) -> tuple[Candidate, Curve]:
    candidate = Candidate.of(profile, "eagle", demand(make_forecast(**forecast)))
    curve = policies.curves(policy, candidate.replica, candidate.constraints)[0]
    return candidate, curve


def drawn(policy: str, count: int = 20_000, seed: int = 1, **forecast):
    candidate, curve = solved(policy, **forecast)
    return requests(candidate, curve, 0, np.arange(1.0, count + 1), seed)


def test_step_times_are_the_profiles_at_every_whole_batch():
    _, curve = solved("always:2")
    tables = engine(curve, 0)
    assert tables.draft_tokens.tolist() == [2]
    for batch in (1, 3, 100, 256):
        expected = (0.010 + 0.0001 * batch) * 1.10 + 0.002
        assert tables.step_s[0, batch] == pytest.approx(expected)
        assert tables.draft_s[0, batch] == pytest.approx(0.002)
        # 10 us a prompt token beside any batch, on top of the step.
        assert tables.chunk_s[0, batch, 1:] == pytest.approx(1e-5 * tables.chunk_tokens[1:])
    assert (tables.step_s[:, 0] == 0).all()
    # Alone, one token is a whole step: that of the smallest chunk measured.
    assert tables.chunk_s[0, 0, 1:] == pytest.approx(
        1e-5 * np.maximum(tables.chunk_tokens[1:], 256)
    )


def test_draft_lengths_follow_the_ranges():
    _, curve = solved("by-load")
    tables = engine(curve, 0)
    for draft in curve.ranges:
        for batch in (draft.from_batch, draft.to_batch):
            assert tables.draft_tokens[tables.variant_by_batch[batch]] == draft.draft_tokens


def test_draft_lengths_end_where_their_steps_were_measured_and_every_step_that_runs_is_known():
    # Four drafts were measured to batch 64 alone, two to 128, as operator tables end.
    last = {5: 64, 4: 64, 3: 128}
    kept = [cell for cell in PROFILE.steps.rows if cell.batch <= last.get(cell.query_tokens, 10**6)]
    steps = PROFILE.steps.model_copy(update={"rows": tuple(kept)})
    mixed = [c for c in PROFILE.mixed.rows if c.batch <= last.get(c.query_tokens, 10**6)]
    ragged = PROFILE.model_copy(
        update={"steps": steps, "mixed": PROFILE.mixed.model_copy(update={"rows": tuple(mixed)})}
    )
    _, curve = solved("by-load", ragged)
    ends = {draft.draft_tokens: draft.to_batch for draft in curve.ranges}
    assert len(ends) > 1
    assert all(end <= last.get(drafts + 1, 256) for drafts, end in ends.items())
    tables = engine(curve, 0)
    batch = np.arange(1, tables.max_batch + 1)
    read = tables.step_s[tables.variant_by_batch[1:], batch]
    assert len(tables.context_tokens) > 0
    assert np.isfinite(read).all()


def test_lengths_keep_their_means_and_their_quantiles():
    found = drawn("plain", prompt=1000.0, output=300.0, cv=0.8)
    assert (found.prefill_tokens + found.cached_tokens).mean() == pytest.approx(1000, rel=1e-6)
    assert found.output_tokens.mean() == pytest.approx(300, rel=2e-3)
    sigma = np.sqrt(np.log1p(0.8**2))
    median = 300 * np.exp(-(sigma**2) / 2)
    assert np.median(found.output_tokens) == pytest.approx(median, rel=0.03)
    p95 = median * np.exp(1.645 * sigma)
    assert np.quantile(found.output_tokens, 0.95) == pytest.approx(p95, rel=0.03)


def test_the_same_seed_draws_the_same_and_another_does_not():
    first, second, other = drawn("always:4"), drawn("always:4"), drawn("always:4", seed=2)
    assert (first.output_tokens == second.output_tokens).all()
    assert (first.kind == second.kind).all()
    assert (first.kind != other.kind).any()


def test_plain_requests_are_of_one_clock_and_emit_one_token():
    found = drawn("plain")
    assert (found.tokens_per_round == 1).all()
    assert (found.second_moment == 1).all()
    assert found.group_tokens.shape[0] == 1


def test_requests_of_all_kinds_together_emit_what_was_counted():
    # 0.8, 0.64, 0.512, 0.4096 kept: 3.3616 tokens over rounds, whatever the spread between them.
    found = drawn("always:4", count=32_000)
    own = found.tokens_per_round[found.kind, 0]
    assert 1 / np.mean(1 / own) == pytest.approx(3.3616, rel=2e-3)
    assert own.std() > 0.3


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.05, 0.95), min_size=4, max_size=4).map(np.cumprod), st.floats(0.0, 0.15)
)
def test_a_kinds_second_moment_is_that_of_its_own_rounds(shares, spread):
    drafter = PROFILE.drafters["eagle"]
    table = Acceptance(accepted_share=tuple(shares.tolist()), per_request_sd=spread, origin=ASSUMED)
    profile = PROFILE.model_copy(
        update={"drafters": {"eagle": drafter.model_copy(update={"acceptance": {"chat": table}})}}
    )
    candidate, curve = solved("always:4", profile)
    found = requests(candidate, curve, 0, np.arange(1.0, 100.0), 1)
    variance = found.second_moment - found.tokens_per_round**2
    assert (variance > -1e-9).all()
    # Without spread every kind is the table itself.
    if spread == 0:
        assert found.tokens_per_round[:, 0] == pytest.approx(1 + shares.sum())
        assert variance[:, 0] == pytest.approx(acceptance.tokens_per_round_variance(shares)[4])


def test_classes_come_in_their_shares():
    whole = make_forecast()
    third = whole.classes[0].model_copy(update={"share": 0.25})
    rest = whole.classes[0].model_copy(update={"share": 0.75, "name": "other"})
    asked = demand(whole.model_copy(update={"classes": (third, rest)}))
    candidate = Candidate.of(PROFILE, "eagle", asked)
    curve = policies.curves("plain", candidate.replica, candidate.constraints)[0]
    found = requests(candidate, curve, 0, np.arange(1.0, 4001.0), 1)
    assert np.bincount(found.traffic_class).tolist() == [1000, 3000]


def test_every_prompt_has_a_token_even_where_its_distribution_has_less():
    found = drawn("plain", prompt=3.0, cv=2.0)
    assert found.prefill_tokens.min() == 1.0
    assert found.cached_tokens.min() == 0.0
