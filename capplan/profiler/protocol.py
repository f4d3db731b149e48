"""How a step is timed: the same steps for every cell, on every device.

::

    prepare    warm-up                        runs
    |--------| |---| |---| ... |---| |---|   |---| |---|  ...  |---|
     graph      until two in a row differ     one time each
     capture    by less than SETTLED, at
                most MAX_WARM_UP

    each |---|:   wait | overwrite the caches | start > the step > stop | wait

Caches are overwritten because a model's step finds its weights in memory: the other layers and
sequences have been there since. A few layers repeated would find them in the cache.
The median of the runs stands for the cell. Its interval comes from the order of the runs alone: a
time is as likely to fall below the true median as above it, whatever its distribution.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

Step = Callable[[], object]
"""One forward pass; what it returns is not looked at."""

MAX_WARM_UP: Final = 6
SETTLED: Final = 0.05
"""Relative difference of two successive warm-up times at which warming up ends."""
CONFIDENCE: Final = 0.95


class Clock(Protocol):
    """Times a step on one device."""

    def prepare(self, step: Step) -> Step:
        """Returns what will be timed: the step itself or a recording of it."""
        ...

    def time(self, step: Step) -> float:
        """Runs the step once. [s]."""
        ...


@dataclass(frozen=True)
class Timing:
    """The median of several runs."""

    step_s: float
    low_s: float | None
    """Ends of the median's interval; None where there are too few runs for one."""
    high_s: float | None
    runs: int

    def plus(self, other: "Timing", times: float) -> "Timing":
        """Adds another time, taken `times` over; the ends add up too, which widens the interval."""
        low = high = None
        if self.low_s is not None and other.low_s is not None:
            low = self.low_s + times * other.low_s
        if self.high_s is not None and other.high_s is not None:
            high = self.high_s + times * other.high_s
        step = self.step_s + times * other.step_s
        return Timing(step, low, high, min(self.runs, other.runs))


def measure(prepared: Step, clock: Clock, runs: int) -> Timing:
    """Times a step as the figure above shows.

    Args:
        prepared: The forward pass, as the clock's `prepare` returned it.
        clock: The device's clock.
        runs: How often the step is timed.

    Returns:
        The median and its interval.
    """
    _warm_up(prepared, clock)
    return summary([clock.time(prepared) for _ in range(runs)])


def summary(times_s: Sequence[float]) -> Timing:
    """Reduces the times of several runs.

    Args:
        times_s: One time a run. [s]
    """
    ordered = sorted(times_s)
    ranks = interval_ranks(len(ordered))
    return Timing(
        step_s=statistics.median(ordered),
        low_s=None if ranks is None else ordered[ranks[0] - 1],
        high_s=None if ranks is None else ordered[ranks[1] - 1],
        runs=len(ordered),
    )


def interval_ranks(runs: int) -> tuple[int, int] | None:
    """Ranks, from 1, of the runs between which the true median lies.

    The number of runs below the median is binomial with chance 1/2, so the interval from the r-th
    smallest to the r-th largest misses it with chance 2·P(fewer than r below).

    Args:
        runs: How many times were taken.

    Returns:
        The narrowest such pair that holds the median with a chance of at least CONFIDENCE; None
        below six runs, where even the whole range does not.

    Source:
        Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2.
    """
    rank, missed = 0, 0.0
    while (missed := missed + math.comb(runs, rank) / 2**runs) <= (1 - CONFIDENCE) / 2:
        rank += 1
    return (rank, runs + 1 - rank) if rank else None


def _warm_up(step: Step, clock: Clock) -> None:
    before = clock.time(step)
    for _ in range(MAX_WARM_UP - 1):
        after = clock.time(step)
        if abs(after - before) <= SETTLED * before:
            return
        before = after
