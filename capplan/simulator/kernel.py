"""The events: requests arrive, steps end, steps begin.

One source runs compiled and as plain Python and gives the same numbers. Import this module only
to simulate: it brings numba.
"""

import numpy as np

from capplan.simulator.decoding import finish_step, see_gap, undrafted
from capplan.simulator.jit import jit
from capplan.simulator.prompts import make_room, take_up
from capplan.simulator.state import (
    DRAFT,
    INTERFERENCE,
    NOBODY,
    ROUNDS,
    TARGET,
    Load,
    Seen,
    State,
    Tables,
)
from capplan.simulator.timing import chunk_s, round_s

ROUND_ROBIN = 0
LEAST_LOADED = 1


@jit
def run(tables: Tables, load: Load, state: State, seen: Seen, router: int, most_steps: int) -> None:
    """Goes on until every request is finished or `most_steps` steps have ended."""
    for _ in range(most_steps):
        if state.unfinished[0] == 0:
            return
        replica = let_in(load, state, router)
        finish_step(tables, load, state, seen, replica)
        begin_step(tables, load, state, seen, replica)


@jit
def run_closed(tables: Tables, load: Load, state: State, seen: Seen, most_steps: int) -> None:
    """As `run`, for one replica where the next request comes when one is finished.

    It misses the step that begins at that moment, unless the replica would be idle.
    """
    for _ in range(most_steps):
        if state.unfinished[0] == 0:
            return
        now_s, before = state.end_s[0], state.unfinished[0]
        finish_step(tables, load, state, seen, 0)
        begin_step(tables, load, state, seen, 0)
        let_next_in(load, state, before - state.unfinished[0], now_s)
        state.end_s[0] = now_s if state.end_s[0] == np.inf else state.end_s[0]


@jit
def let_next_in(load: Load, state: State, count: int, now_s: float) -> None:
    """The next requests come, as many as are left."""
    for _ in range(count):
        request = state.arrived[0]
        if request < len(load.arrival_s):
            load.arrival_s[request] = now_s
            enqueue(state, 0, request)
            state.arrived[0] += 1


@jit
def let_in(load: Load, state: State, router: int) -> int:
    """Gives out what arrives before the next step ends.

    Returns:
        The replica whose step ends next.
    """
    soonest = 0
    for replica in range(1, len(state.end_s)):
        if state.end_s[replica] < state.end_s[soonest]:
            soonest = replica
    request = state.arrived[0]
    while request < len(load.arrival_s) and load.arrival_s[request] <= state.end_s[soonest]:
        replica = route(state, router, request)
        enqueue(state, replica, request)
        if state.end_s[replica] == np.inf:
            state.end_s[replica] = load.arrival_s[request]
            soonest = replica
        request += 1
    state.arrived[0] = request
    return soonest


@jit
def route(state: State, router: int, request: int) -> int:
    """The replica that gets a request.

    Least loaded goes by requests given out and not finished, known at once; ties go in turn.
    """
    replicas = len(state.end_s)
    turn = request % replicas
    if router == ROUND_ROBIN:
        return turn
    best = turn
    for step in range(1, replicas):
        other = (turn + step) % replicas
        if state.outstanding[other] < state.outstanding[best]:
            best = other
    return best


@jit
def enqueue(state: State, replica: int, request: int) -> None:
    """Puts a request at the end of the replica's queue."""
    if state.last[replica] != NOBODY:
        state.after[state.last[replica]] = request
    state.last[replica] = request
    state.outstanding[replica] += 1
    if state.head[replica] == NOBODY:
        state.head[replica] = request
        if state.first[replica] == NOBODY:
            state.first[replica] = request


@jit
def begin_step(tables: Tables, load: Load, state: State, seen: Seen, replica: int) -> None:
    """Forms the step that begins as the last one ends, and sets when it ends."""
    preempted = make_room(tables, load, state, seen, replica)
    batch = state.running[replica]
    variant = tables.variant_by_batch[batch]
    state.variant[replica] = variant
    state.first[replica] = state.head[replica]
    tokens, attending_s = 0.0, 0.0
    if not preempted:
        tokens, attending_s = take_up(tables, load, state, seen, replica)
    if batch == 0 and tokens == 0:
        state.end_s[replica] = np.inf
        return
    decoding_s = 0.0
    prefill_s = 0.0
    without = undrafted(load, state, replica)
    if batch > 0:
        decoding_s = round_s(tables, variant, batch, state.context[replica] / batch)
        decoding_s -= without * tables.saved_s[variant, batch]
    if tokens > 0:
        prefill_s = chunk_s(tables, variant, batch, tokens) + attending_s
    state.end_s[replica] += decoding_s + prefill_s
    seen.rounds_by_batch[batch] += 1
    seen.time_by_batch_s[batch] += decoding_s + prefill_s
    if batch > 0:
        drafting_s = tables.draft_s[variant, batch - without]
        state.spent[replica, TARGET] += decoding_s - drafting_s
        state.spent[replica, DRAFT] += drafting_s
        state.spent[replica, INTERFERENCE] += prefill_s
        state.spent[replica, ROUNDS] += 1
        see_gap(seen, decoding_s + prefill_s, batch)
