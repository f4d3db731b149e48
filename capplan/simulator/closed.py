"""A closed loop: so many requests in flight, as in benchmarks and batch jobs."""

from dataclasses import replace

import numpy as np

from capplan.physics.engine import Engine, Outcome, Requests
from capplan.simulator.check import check
from capplan.simulator.fleet import STEPS_AT_A_TIME, outcome_of
from capplan.simulator.state import fresh_state, load_of, nothing_seen, tables_of


def simulate_closed(engine: Engine, requests: Requests, in_flight: int) -> Outcome:
    """Runs requests through one engine, the next one coming the moment one is finished.

    Its client had to see the end first: it misses the step that begins at that moment, unless
    the engine would be idle. The first come together, and at the end fewer are in flight: neither
    belongs to the steady state.

    Args:
        engine: The replica.
        requests: In the order in which they come; when they would arrive is ignored.
        in_flight: Requests waiting, in prefill or decoding, together; at least 1.

    Returns:
        Times of each request; `arrival_s` is when it came.

    Raises:
        AssertionError: See `check`.
    """
    from capplan.simulator import kernel

    assert in_flight >= 1, "nothing in flight"
    requests = replace(requests, arrival_s=np.zeros(len(requests.arrival_s)))
    check(engine, requests)
    tables, load = tables_of(engine), load_of(requests, 1.0)
    state = fresh_state(engine, requests, replicas=1)
    state.end_s[0] = 0.0
    kernel.let_next_in(load, state, in_flight, 0.0)
    seen = nothing_seen(engine, len(requests.arrival_s))
    while state.unfinished[0] > 0:
        kernel.run_closed(tables, load, state, seen, STEPS_AT_A_TIME)
    return outcome_of(load, seen, replicas=1)
