"""What looks wrong in a trace is said, and what merely looks random is not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.importers.traces import suspicions
from capplan.records.trace import Trace


def trace(arrival_s, prompt=None, output=None, dated=True):
    count = len(arrival_s)
    return Trace(
        arrival_s=np.asarray(arrival_s, dtype=float),
        prompt_tokens=np.full(count, 100.0) if prompt is None else np.asarray(prompt) * 1.0,
        output_tokens=np.arange(count) % 97.0 + 1 if output is None else np.asarray(output),
        kind=np.zeros(count, dtype=np.int64),
        kinds=("all",),
        dated=dated,
    )


def random_arrivals(seed, count=5000, per_s=1.0):
    return np.random.default_rng(seed).exponential(1 / per_s, count).cumsum()


@given(st.integers(0, 200))
def test_random_arrivals_and_lengths_raise_no_suspicion(seed):
    lengths = np.random.default_rng(seed).lognormal(6, 1, 5000).astype(int) + 1

    found = trace(random_arrivals(seed), prompt=lengths, output=lengths.astype(float))
    assert suspicions.of_file(found) == []
    assert suspicions.of_trace(found) == []


def test_a_gap_is_said_with_its_begin_and_length():
    arrivals = random_arrivals(1)
    arrivals[2500:] += 1800
    (line,) = suspicions.of_file(trace(arrivals, dated=False))

    assert line.startswith("nothing for 30.")
    assert f"from hour {arrivals[2499] / 3600:.2f}" in line


def test_a_clock_that_goes_back_is_said():
    arrivals = random_arrivals(1)
    arrivals[100] = arrivals[99] - 7

    assert suspicions.of_file(trace(arrivals)) == [
        "1 rows are earlier than the row before, by up to 7 s: sorted"
    ]


def test_lengths_cut_at_a_limit_are_said():
    lengths = np.random.default_rng(2).lognormal(7, 1, 20_000).astype(int) + 1
    cut = np.minimum(lengths, 7437)
    share = (cut > 0.99 * 7437).mean()

    (line,) = suspicions.of_file(trace(random_arrivals(1, 20_000), prompt=cut))
    assert line == (f"{share:.1%} of the prompts have about 7,437 tokens: cut at a limit, it seems")


def test_requests_that_stand_twice_are_counted():
    arrivals = random_arrivals(1, 2000)
    arrivals[1] = arrivals[0]

    assert suspicions.of_trace(trace(arrivals, output=np.full(2000, 5.0))) == [
        "1 requests repeat another in time and lengths: kept"
    ]


def test_whole_seconds_are_said_and_not_taken_for_duplicates():
    arrivals = np.floor(random_arrivals(1, per_s=50.0))

    (line,) = suspicions.of_trace(trace(arrivals))
    assert line.startswith("the clock counts whole seconds")


@pytest.mark.parametrize("dated", [True, False])
def test_a_moment_is_told_as_a_date_only_where_there_is_one(dated):
    assert suspicions.clock(1_700_000_000, dated) == (
        "2023-11-14 22:13:20" if dated else "hour 472222.22"
    )
