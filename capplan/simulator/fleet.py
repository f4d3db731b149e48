"""Several replicas of one engine behind a router."""

from typing import Literal

import numpy as np

from capplan.physics.engine import Engine, Outcome, Requests
from capplan.simulator.check import check
from capplan.simulator.state import (
    GAP_BINS,
    LONGEST_GAP_S,
    SHORTEST_GAP_S,
    Load,
    Seen,
    fresh_state,
    load_of,
    nothing_seen,
    tables_of,
)

Router = Literal["round-robin", "least-loaded"]

# Compiled code does not hear an interrupt: it returns after so many steps, a fraction of a second.
STEPS_AT_A_TIME = 1 << 18


def simulate_fleet(
    engine: Engine,
    requests: Requests,
    rate_per_s: float,
    replicas: int,
    router: Router = "round-robin",
) -> Outcome:
    """Runs requests at a rate through replicas, each first come first served.

    Every request is served in the end, however late. The least-loaded router knows at once how
    many requests each replica has been given and not finished; real routers lag behind.

    Args:
        engine: Each replica.
        requests: At least one. Each must fit alone: prompt and output within `cache_tokens`.
        rate_per_s: Of all requests together. [1/s]
        replicas: At least 1.
        router: How requests are given out.

    Returns:
        Times of each request; batches and steps over all replicas, `mean_batch` a replica.

    Raises:
        AssertionError: See `check`.
    """
    from capplan.simulator import kernel

    check(engine, requests)
    routers = {"round-robin": kernel.ROUND_ROBIN, "least-loaded": kernel.LEAST_LOADED}
    tables, load = tables_of(engine), load_of(requests, rate_per_s)
    state = fresh_state(engine, requests, replicas)
    seen = nothing_seen(engine, len(requests.arrival_s))
    while state.unfinished[0] > 0:
        kernel.run(tables, load, state, seen, routers[router], STEPS_AT_A_TIME)
    return outcome_of(load, seen, replicas)


def outcome_of(load: Load, seen: Seen, replicas: int) -> Outcome:
    """What was seen, with the idle time at batch 0."""
    last_s = np.max(load.arrival_s + seen.ttft_s + seen.decode_s)
    makespan_s = float(last_s - load.arrival_s[0])
    time_by_batch_s = seen.time_by_batch_s.copy()
    idle_s = replicas * makespan_s - time_by_batch_s.sum()
    time_by_batch_s[0] += max(idle_s, 0.0)
    sequence_s = float(time_by_batch_s @ np.arange(len(time_by_batch_s)))
    target_s, draft_s, interference_s, rounds = np.ascontiguousarray(seen.parts.T)
    return Outcome(
        arrival_s=load.arrival_s,
        ttft_s=seen.ttft_s,
        decode_s=seen.decode_s,
        queue_s=seen.queue_s,
        prefill_alone_s=seen.prefill_alone_s,
        preemptions=seen.preemptions,
        target_s=target_s,
        draft_s=draft_s,
        interference_s=interference_s,
        rounds=rounds.astype(np.int64),
        mean_batch=sequence_s / (replicas * makespan_s),
        rounds_by_batch=seen.rounds_by_batch,
        time_by_batch_s=time_by_batch_s,
        gap_edges_s=np.geomspace(SHORTEST_GAP_S, LONGEST_GAP_S, GAP_BINS + 1),
        gaps=seen.gaps,
        makespan_s=makespan_s,
    )
