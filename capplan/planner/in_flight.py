"""A pool's replica with a number of requests always in flight: the law beside a simulation."""

from collections.abc import Callable, Sequence

import numpy as np

from capplan.physics.engine import Engine, Outcome, Requests
from capplan.planner.closed_loop import in_flight_point
from capplan.planner.pool import Pool
from capplan.planner.rehearsal import engine, requests
from capplan.records.simulation import InFlight, Mean, Steady

SimulateClosed = Callable[[Engine, Requests, int], Outcome]
"""Runs requests through one engine, so many in flight."""

_FEWEST, _EACH = 4_000, 100
"""Requests of a run at least, and for each one in flight."""
_STEADY = 0.2, 0.9
"""Parts of the requests, by arrival, between which the loop is steady."""


def compare_in_flight(
    pool: Pool, counts: Sequence[int], simulate: SimulateClosed, seed: int
) -> tuple[InFlight, ...]:
    """Means with so many requests in flight, at the peak's mix.

    Args:
        pool: Its replica and requests.
        counts: Requests in flight.
        simulate: Runs a closed loop.
        seed: Of all draws.

    Raises:
        InputError: A batch would lie beyond what was measured.
    """
    return tuple(_compared(pool, count, simulate, seed) for count in counts)


def _compared(pool: Pool, count: int, simulate: SimulateClosed, seed: int) -> InFlight:
    law = in_flight_point(pool.curve, pool.mix, count)
    size = max(_FEWEST, _EACH * count)
    drawn = requests(pool.candidate, pool.curve, pool.mix, np.arange(1.0, size + 1), seed)
    run = simulate(engine(pool.curve, pool.mix), drawn, count)
    first, last = (int(part * size) for part in _STEADY)
    from_s, to_s = run.arrival_s[first], run.arrival_s[last]
    after = drawn.output_tokens[first:last] - 1
    decode_s = float(run.decode_s[first:last].sum())
    rows: tuple[tuple[Steady, float, float], ...] = (
        ("batch", law.batch, decode_s / (to_s - from_s)),
        ("rate_per_s", law.rate_per_s, run.per_s(np.ones(size), from_s, to_s)),
        (
            "output_tokens_per_s",
            law.output_tokens_per_s,
            run.per_s(drawn.output_tokens, from_s, to_s),
        ),
        ("tpot_mean_s", law.tpot_mean_s, decode_s / max(float(after.sum()), 1.0)),
        ("ttft_mean_s", law.ttft_mean_s, float(run.ttft_s[first:last].mean())),
    )
    return InFlight(
        in_flight=count,
        requests=size,
        limit=None if law.limit is None else law.limit.text,
        compared=tuple(
            Mean(quantity=name, predicted=said, simulated=seen) for name, said, seen in rows
        ),
    )
