"""Sequences that decode: each group's clock, who joins it, who leaves.

A sequence of kind k emits A_k tokens a round in expectation. Instead of moving every sequence at
every step, each group of alike kinds has one clock that moves A_group; a sequence enters the
group's heap with the clock at which it ends, and its luck is in that number. Plain decoding, one
token a round without luck, is exact.
"""

import math

from capplan.simulator.heap import newest, push, remove
from capplan.simulator.jit import jit
from capplan.simulator.state import (
    BINS_PER_E_FOLD,
    GAP_BINS,
    NOBODY,
    PARTS,
    SHORTEST_GAP_S,
    Load,
    Seen,
    State,
    Tables,
)


@jit
def undrafted(load: Load, state: State, replica: int) -> int:
    """Sequences that go without drafts, whatever the others do."""
    if load.undrafted_group == NOBODY:
        return 0
    return int(state.size[replica * len(load.group_tokens) + load.undrafted_group])


@jit
def work_tokens(load: Load, request: int, variant: int) -> float:
    r"""Tokens by which the clock has to move for one answer, given its luck.

    Rounds to emit m tokens, N a round, have mean (m + E[overshoot]) / A, where the overshoot of
    the last round is (E[N²] / A − 1) / 2, and variance m Var(N) / A³. The clock stops at whole
    rounds, half a round late on average.

    Source:
        Wald's identity and the renewal theorem on a lattice: Feller, An Introduction to
        Probability Theory and Its Applications, volume II, XI.
    """
    rest = load.output_tokens[request] - 1.0
    if rest <= 0:
        return 0.0
    kind = load.kind[request]
    mean = load.tokens_per_round[kind, variant]
    second = load.second_moment[kind, variant]
    spread = math.sqrt(rest * max(second - mean * mean, 0.0) / mean)
    overshoot = 0.5 * (second / mean - 1.0)
    return float(max(rest + overshoot - 0.5 * mean + load.noise[request] * spread, 0.5))


@jit
def finish_step(tables: Tables, load: Load, state: State, seen: Seen, replica: int) -> None:
    """Moves the clocks by the step that ends now; ends answers, then starts the new ones."""
    groups = len(load.group_tokens)
    for group in range(groups):
        row = replica * groups + group
        if state.size[row] == 0:
            continue
        moved = load.group_tokens[group, state.variant[replica]]
        state.clock[row] += moved
        state.context[replica] += moved * state.pace[row]
        while state.size[row] > 0 and state.target[state.heap[row, 0]] <= state.clock[row]:
            request = state.heap[row, 0]
            leave(state, seen, replica, row, 0)
            complete(state, seen, replica, request)
    request = state.first[replica]
    while request != state.head[replica]:
        if state.finished[request] == 0:
            start(tables, load, state, seen, replica, request)
        request = state.after[request]


@jit
def start(tables: Tables, load: Load, state: State, seen: Seen, replica: int, request: int) -> None:
    """The prompt's last chunk has just run: it gives one token, and decoding begins."""
    now = state.end_s[replica]
    state.prompts[replica] -= state.before[request]
    state.base[request] = state.before[request] + 1.0
    variant = tables.variant_by_batch[state.running[replica] + 1]
    if math.isnan(seen.ttft_s[request]):
        seen.ttft_s[request] = now - load.arrival_s[request]
        seen.decode_s[request] = -now
        state.left[request] = work_tokens(load, request, variant)
    else:
        see_gap(seen, now - state.emitted_s[request], 1)
        state.left[request] -= 1.0
    if state.left[request] <= 0:
        complete(state, seen, replica, request)
        return
    kind = load.kind[request]
    group = load.group[kind]
    row = replica * len(load.group_tokens) + group
    state.rate[request] = load.tokens_per_round[kind, variant] / load.group_tokens[group, variant]
    state.began[request] = state.clock[row]
    state.target[request] = state.clock[row] + state.left[request] / state.rate[request]
    push(state.heap[row], state.size[row], state.target, request)
    state.size[row] += 1
    state.pace[row] += state.rate[request]
    state.running[replica] += 1
    state.context[replica] += state.base[request]
    for part in range(PARTS):
        seen.parts[request, part] -= state.spent[replica, part]


@jit
def leave(state: State, seen: Seen, replica: int, row: int, place: int) -> float:
    """Takes a sequence out of its group, and exactly the context it brought and added.

    Returns:
        Tokens it emitted since decoding began.
    """
    request = state.heap[row, place]
    emitted = float((state.clock[row] - state.began[request]) * state.rate[request])
    for part in range(PARTS):
        seen.parts[request, part] += state.spent[replica, part]
    remove(state.heap[row], state.size[row], state.target, place)
    state.size[row] -= 1
    state.running[replica] -= 1
    state.pace[row] -= state.rate[request]
    state.context[replica] -= state.base[request] + emitted
    # What rounding left must not pile up over millions of steps.
    if state.size[row] == 0:
        state.pace[row] = 0.0
    if state.running[replica] == 0:
        state.context[replica] = 0.0
    return emitted


@jit
def preempt_newest(state: State, seen: Seen, replica: int) -> None:
    """The sequence that came last loses its cache and is put in front of the queue."""
    groups = len(state.size) // len(state.running)
    row, place = NOBODY, NOBODY
    for other in range(replica * groups, (replica + 1) * groups):
        if state.size[other] == 0:
            continue
        there = newest(state.heap[other], state.size[other])
        if row == NOBODY or state.heap[other, there] > state.heap[row, place]:
            row, place = other, there
    request = state.heap[row, place]
    emitted = leave(state, seen, replica, row, place)
    state.left[request] -= emitted
    state.todo[request] = state.base[request] + emitted
    state.before[request] = 0.0
    state.emitted_s[request] = state.end_s[replica]
    state.head[replica] = request
    seen.preemptions[request] += 1


@jit
def complete(state: State, seen: Seen, replica: int, request: int) -> None:
    """The request has its last token."""
    # Until now the field held the first token's time, negated.
    seen.decode_s[request] += state.end_s[replica]
    state.finished[request] = 1
    state.outstanding[replica] -= 1
    state.unfinished[0] -= 1


@jit
def see_gap(seen: Seen, gap_s: float, streams: int) -> None:
    """Counts a gap between two chunks, for as many streams as saw it."""
    place = int(math.log(gap_s / SHORTEST_GAP_S) * BINS_PER_E_FOLD) if gap_s > 0 else 0
    seen.gaps[min(max(place, 0), GAP_BINS - 1)] += streams
