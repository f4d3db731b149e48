"""What a replica must do whatever its load."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.simulator.replica import compiled, simulate
from simulator.engines import engine, lognormal, requests


def test_one_request_alone_takes_its_chunks_and_its_steps() -> None:
    engaged = engine(fixed_s=5e-3, batch_s=1e-3, context_s=0, token_s=1e-5, budget=512)
    outcome = simulate(engaged, requests(1, prompt=1200, output=11), 1.0)
    assert outcome.ttft_s == pytest.approx([1200e-5])
    assert outcome.prefill_alone_s == pytest.approx([1200e-5])
    assert outcome.queue_s == pytest.approx([0.0])
    assert outcome.decode_s == pytest.approx([10 * 6e-3])
    assert outcome.rounds_by_batch[:3].tolist() == [3, 10, 0]


def test_an_answer_of_one_token_never_decodes() -> None:
    outcome = simulate(engine(), requests(50, output=1), 1.0)
    assert outcome.decode_s.tolist() == [0.0] * 50
    assert outcome.mean_batch == 0
    assert outcome.gaps.sum() == 0


def test_attending_to_what_is_cached_costs_its_time() -> None:
    engaged = engine(token_s=0, attending_s=1e-9, budget=512)
    outcome = simulate(engaged, requests(1, prompt=600, cached=1000, output=1), 1.0)
    # 512 tokens after 1000, then 88 after 1512.
    assert outcome.ttft_s == pytest.approx([1e-9 * (512 * 1000 + 88 * 1512)])


def test_a_chunk_below_the_first_knot_takes_its_part() -> None:
    engaged = engine(token_s=0, attending_s=1e-9)
    outcome = simulate(engaged, requests(1, prompt=4, cached=1000, output=1), 1.0)
    assert outcome.ttft_s == pytest.approx([1e-9 * 4 * 1000])


PARTS = ("target_s", "draft_s", "interference_s")


def parts_s(outcome):
    return sum(getattr(outcome, part) for part in PARTS)


def test_times_of_the_stream_are_told_apart() -> None:
    engaged = engine(draft_tokens=(0, 1, 2), variant_by_batch=np.full(65, 2))
    load = requests(2_000, output=lognormal(50, 1), kept=((0.7, 0.5),))
    outcome = simulate(engaged, load, 10.0)
    sequence_rounds = outcome.rounds_by_batch @ np.arange(65)
    np.testing.assert_allclose(parts_s(outcome), outcome.decode_s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(outcome.draft_s, 2 * 5e-4 * outcome.rounds, rtol=0, atol=1e-9)
    assert outcome.rounds.sum() == sequence_rounds
    assert parts_s(outcome).sum() == pytest.approx(outcome.mean_batch * outcome.makespan_s)
    assert outcome.time_by_batch_s.sum() == pytest.approx(outcome.makespan_s)
    assert outcome.gaps.sum() == pytest.approx(sequence_rounds)


def test_parts_of_one_answer_are_those_of_its_steps() -> None:
    # The second prompt's 300 tokens come as chunks of 249, beside one sequence of a budget of
    # 250, and of 51; both fall into the first answer of 10 rounds.
    engaged = engine(fixed_s=5e-3, batch_s=0, context_s=0, token_s=1e-5, budget=250)
    load = requests(2, prompt=lambda *_: np.array([100.0, 300]), output=11, arrival_s=[0, 2e-3])
    outcome = simulate(engaged, load, 1.0)
    assert outcome.interference_s == pytest.approx([300e-5, 0])
    assert outcome.target_s == pytest.approx([10 * 5e-3] * 2)
    assert outcome.rounds.tolist() == [10, 10]
    assert outcome.arrival_s == pytest.approx([0, 2e-3])


def test_plain_decoding_drafts_for_no_time_and_each_token_is_a_round() -> None:
    load = requests(2_000, output=lognormal(50, 1))
    outcome = simulate(engine(), load, 10.0)
    assert outcome.draft_s.tolist() == [0.0] * 2_000
    np.testing.assert_array_equal(outcome.rounds, load.output_tokens - 1)


def test_what_preemption_costs_is_the_rest() -> None:
    load = requests(2_000, prompt=lognormal(200, 0.5), output=lognormal(150, 1))
    outcome = simulate(engine(cache_tokens=12_000), load, 40.0)
    lost_s = outcome.decode_s - parts_s(outcome)
    kept = outcome.preemptions == 0
    assert (~kept).sum() > 100
    np.testing.assert_allclose(lost_s[kept], 0, atol=1e-9)
    assert lost_s.min() > -1e-9
    assert lost_s[~kept].mean() > 0.01


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 120),
    max_batch=st.integers(1, 12),
    budget=st.integers(5, 300),
    cache=st.integers(700, 3000),
    rate=st.sampled_from([0.1, 5.0, 1e6]),
    drafts=st.integers(0, 3),
)
def test_every_request_is_served_and_every_token_once(
    seed, count, max_batch, budget, cache, rate, drafts
) -> None:
    engaged = engine(
        max_batch=max_batch,
        budget=budget,
        cache_tokens=float(cache),
        draft_tokens=(0, 1, 2, 3),
        variant_by_batch=np.full(max_batch + 1, drafts),
    )
    load = requests(
        count,
        seed=seed,
        prompt=lambda rng, n: rng.integers(1, 400, n).astype(float),
        output=lambda rng, n: rng.integers(1, 300, n).astype(float),
        kept=((0.8, 0.6, 0.4), (0.3, 0.1, 0.0)),
        groups=(0, 0),
    )
    outcome = simulate(engaged, load, rate)
    assert np.all(outcome.ttft_s > 0)
    assert np.all(outcome.decode_s >= 0)
    assert np.all(outcome.queue_s >= -1e-9)
    assert np.all(outcome.queue_s <= outcome.ttft_s)
    if drafts == 0:
        # A preempted sequence gets one token from its own prefill instead of a step.
        steps = outcome.rounds_by_batch @ np.arange(max_batch + 1)
        tokens = (load.output_tokens - 1).sum()
        assert tokens - outcome.preemptions.sum() <= steps <= tokens


def test_a_budget_eaten_up_by_verification_delays_prompts_but_ends() -> None:
    # 16 sequences verify 4 tokens each: nothing is left of 60 for prompts until some are done.
    engaged = engine(
        max_batch=32, budget=60, draft_tokens=(0, 3), variant_by_batch=np.ones(33, dtype=int)
    )
    load = requests(300, output=lognormal(100, 1), kept=((0.5,) * 3,))
    load = replace(
        load,
        tokens_per_round=load.tokens_per_round[:, [0, 3]],
        second_moment=load.second_moment[:, [0, 3]],
        group_tokens=load.group_tokens[:, [0, 3]],
    )
    outcome = simulate(engaged, load, 1e6)
    assert np.all(outcome.decode_s >= 0)
    assert np.flatnonzero(outcome.rounds_by_batch).max() <= 16


def test_too_many_places_for_the_cache_cost_throughput() -> None:
    # A tenth of planner practice: a 70B model whose steps are bound by reading the cache, long
    # answers, 104,000 tokens of cache. Safe is n c̄ + 2.33 σ √n within it: about 185 places.
    load = requests(4_000, prompt=100, output=lognormal(400, 1.0), seed=4)
    load = replace(load, output_tokens=np.minimum(load.output_tokens, 3200))
    crowded, capped = (
        simulate(
            engine(
                fixed_s=1e-2,
                batch_s=3e-5,
                context_s=2.4e-7,
                token_s=8e-5,
                budget=2048,
                max_batch=places,
                cache_tokens=104_000,
            ),
            load,
            1e6,
        )
        for places in (400, 185)
    )
    assert crowded.preemptions.mean() > 1
    assert capped.preemptions.mean() < 0.1
    assert capped.makespan_s < 0.95 * crowded.makespan_s


def test_a_class_nobody_asks_for_changes_nothing() -> None:
    load = requests(500, output=lognormal(50, 1))
    padded = replace(
        load,
        tokens_per_round=np.vstack([load.tokens_per_round, [[1.0]]]),
        second_moment=np.vstack([load.second_moment, [[1.0]]]),
        group=np.array([0, 1]),
        group_tokens=np.vstack([load.group_tokens, [[1.0]]]),
    )
    one, other = (simulate(engine(), of, 5.0) for of in (load, padded))
    np.testing.assert_array_equal(one.decode_s, other.decode_s)


def test_a_table_of_zeros_is_plain_decoding() -> None:
    load = requests(500, output=lognormal(50, 1), kept=((0.7, 0.4),))
    plain = requests(500, output=lognormal(50, 1))
    zeros = engine(draft_tokens=(0, 1, 2), variant_by_batch=np.zeros(65, dtype=int))
    one, other = simulate(engine(), plain, 5.0), simulate(zeros, load, 5.0)
    np.testing.assert_array_equal(one.decode_s, other.decode_s)


def test_more_acceptance_is_faster() -> None:
    engaged = engine(draft_tokens=(0, 1, 2, 3), variant_by_batch=np.full(65, 3))
    shares = [tuple(a**i for i in (1, 2, 3)) for a in (0.3, 0.5, 0.7, 0.9)]
    means = [
        simulate(
            engaged, requests(5_000, output=lognormal(100, 1), kept=(kept,)), 10.0
        ).decode_s.mean()
        for kept in shares
    ]
    assert means == sorted(means, reverse=True)


def test_a_request_larger_than_the_cache_is_refused_at_once() -> None:
    with pytest.raises(AssertionError, match="does not fit"):
        simulate(engine(cache_tokens=150), requests(1, prompt=100, output=100), 1.0)


@pytest.mark.parametrize(
    ("table", "place"), [("step_s", (0, 3, 0)), ("chunk_s", (0, 3, 1)), ("own_s", (0, 1))]
)
def test_a_time_that_is_not_known_is_refused_where_it_would_be_read(table, place) -> None:
    engaged = engine()
    values = getattr(engaged, table).copy()
    values[place] = np.nan
    with pytest.raises(AssertionError, match="not known"):
        simulate(replace(engaged, **{table: values}), requests(5), 1.0)


def test_a_variant_that_never_runs_may_be_unknown() -> None:
    engaged = engine(draft_tokens=(0, 1), variant_by_batch=np.zeros(65, dtype=int))
    step_s = engaged.step_s.copy()
    step_s[1] = np.nan
    outcome = simulate(replace(engaged, step_s=step_s), requests(5, kept=((0.5,),)), 1.0)
    assert np.all(np.isfinite(outcome.decode_s))


def test_kinds_without_their_variants_are_refused() -> None:
    with pytest.raises(AssertionError, match="tokens_per_round"):
        simulate(engine(draft_tokens=(0, 1)), requests(5), 1.0)


PROGRAM = """
import numpy as np
from simulator.engines import engine, lognormal, requests
from capplan.simulator.closed import simulate_closed
from capplan.simulator.replica import compiled, simulate
engaged = engine(draft_tokens=(0, 1, 2, 3), cache_tokens=9000,
                 variant_by_batch=np.where(np.arange(65) < 12, 3, 0))
load = requests(400, prompt=lognormal(200, 0.5), output=lognormal(100, 1),
                kept=((0.7, 0.5, 0.3), (0.8, 0.7, 0.6)))
outcome = simulate(engaged, load, 40.0)
print(compiled(), outcome.preemptions.sum() > 0)
closed = simulate_closed(engaged, load, 20)
for name in ("arrival_s", "ttft_s", "decode_s", "queue_s", "target_s", "draft_s",
             "interference_s", "rounds", "gaps", "time_by_batch_s"):
    print(getattr(outcome, name).tobytes().hex())
    print(getattr(closed, name).tobytes().hex())
"""


def test_compiled_and_plain_python_give_the_same_numbers() -> None:
    if not compiled():
        pytest.skip("numba is not installed")
    path = os.pathsep.join(["tests", *filter(None, [os.environ.get("PYTHONPATH")])])
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": disabled},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for disabled in ("0", "1")
    ]
    assert [text.splitlines()[0] for text in outputs] == ["True True", "False True"]
    assert outputs[0].splitlines()[1:] == outputs[1].splitlines()[1:]


def test_importing_the_simulator_leaves_numba_alone() -> None:
    program = (
        "import sys, capplan.simulator.replica, capplan.simulator.split, "
        "capplan.simulator.arrivals, capplan.simulator.closed; "
        "print('numba' in sys.modules, 'scipy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "False"]
