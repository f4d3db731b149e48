"""The statistics of the protocol, with times from a list instead of a clock."""

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.profiler.protocol import (
    MAX_WARM_UP,
    Step,
    Timing,
    interval_ranks,
    measure,
    summary,
)


class FakeClock:
    """Gives out times in order and counts them."""

    def __init__(self, times_s: Iterable[float]) -> None:
        self._times_s = iter(times_s)
        self.asked = 0

    def prepare(self, step: Step) -> Step:
        return step

    def time(self, step: Step) -> float:
        step()
        self.asked += 1
        return next(self._times_s)


def nothing() -> None:
    pass


@pytest.mark.parametrize("runs", [6, 7, 10, 20, 37, 100])
def test_ranks_are_the_binomial_ones(runs: int) -> None:
    from scipy.stats import binom

    low, high = interval_ranks(runs) or (0, 0)
    coverage = binom.cdf(high - 1, runs, 0.5) - binom.cdf(low - 1, runs, 0.5)
    assert coverage >= 0.95
    narrower = binom.cdf(high - 2, runs, 0.5) - binom.cdf(low, runs, 0.5)
    assert narrower < 0.95


@pytest.mark.parametrize(("runs", "ranks"), [(6, (1, 6)), (9, (2, 8)), (20, (6, 15))])
def test_ranks_agree_with_printed_tables_of_the_sign_test(
    runs: int, ranks: tuple[int, int]
) -> None:
    assert interval_ranks(runs) == ranks


@pytest.mark.parametrize("runs", [1, 2, 5])
def test_five_runs_have_no_interval(runs: int) -> None:
    assert interval_ranks(runs) is None
    timing = summary([3.0] * runs)
    assert (timing.step_s, timing.low_s, timing.high_s) == (3.0, None, None)


def test_the_median_and_its_ends_are_order_statistics() -> None:
    timing = summary([9, 1, 8, 2, 7, 3, 6, 4, 5])
    assert timing == Timing(step_s=5, low_s=2, high_s=8, runs=9)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for times in rng.lognormal(sigma=0.8, size=(2000, 12)):
        timing = summary(times.tolist())
        assert timing.low_s is not None
        assert timing.high_s is not None
        held += timing.low_s <= 1.0 <= timing.high_s
    # 12 runs: ranks 3 and 10, 96.1 %; four standard errors of 2,000 trials are 1.7 %.
    assert held / 2000 == pytest.approx(0.961, abs=0.018)


def test_warming_up_ends_when_times_settle() -> None:
    clock = FakeClock([9.0, 5.0, 3.0, 2.0, 1.99, *[2.0] * 7])
    timing = measure(nothing, clock, runs=7)
    assert clock.asked == 5 + 7
    assert timing == Timing(2.0, 2.0, 2.0, 7)


def test_warming_up_ends_even_where_times_never_settle() -> None:
    clock = FakeClock(itertools.cycle([1.0, 2.0]))
    measure(nothing, clock, runs=6)
    assert clock.asked == MAX_WARM_UP + 6


@given(st.lists(st.floats(1e-6, 1e3), min_size=6, max_size=40), st.floats(0, 100))
def test_adding_layers_keeps_the_ends_around_the_time(times: list[float], layers: float) -> None:
    one = summary(times)
    both = one.plus(one, layers)
    assert both.low_s is not None
    assert both.high_s is not None
    assert both.low_s <= both.step_s <= both.high_s
    assert both.step_s == pytest.approx((1 + layers) * one.step_s)


def test_a_sum_with_an_unknown_end_has_none() -> None:
    assert summary([1.0] * 6).plus(summary([1.0]), 2) == Timing(3.0, None, None, 1)
