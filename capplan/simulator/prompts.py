"""Prompts: who is let in beside the decoding sequences, and how much of them a step takes."""

import math

from capplan.simulator.decoding import preempt_newest, undrafted
from capplan.simulator.jit import jit
from capplan.simulator.state import NOBODY, Load, Seen, State, Tables
from capplan.simulator.timing import alone_s, own_s


@jit
def make_room(tables: Tables, load: Load, state: State, seen: Seen, replica: int) -> bool:
    """Preempts until the tokens of the coming step fit into the cache, drafts included.

    The newest goes first: the prompt under way, then sequences. The last one stays, so that the
    oldest request always gets on.

    Returns:
        Whether anyone was preempted.
    """
    preempted = False
    while slots(tables, load, state, replica) > tables.cache_tokens:
        if state.under_way[replica] == 1:
            request = state.head[replica]
            state.todo[request] += state.before[request]
            state.before[request] = 0.0
            state.prompts[replica] = 0.0
            state.under_way[replica] = 0
            seen.preemptions[request] += 1
        elif state.running[replica] > 1:
            preempt_newest(state, seen, replica)
        else:
            break
        preempted = True
    return preempted


@jit
def slots(tables: Tables, load: Load, state: State, replica: int) -> float:
    """Cache that the coming step needs before new prompts [tokens]."""
    drafts = drafted(tables, load, state, replica)
    return float(state.context[replica] + drafts + state.prompts[replica])


@jit
def drafted(tables: Tables, load: Load, state: State, replica: int) -> int:
    """Drafts of the coming step, all sequences together [tokens]."""
    running = state.running[replica]
    each = tables.draft_tokens[tables.variant_by_batch[running]]
    return int(each * (running - undrafted(load, state, replica)))


@jit
def take_up(
    tables: Tables, load: Load, state: State, seen: Seen, replica: int
) -> tuple[float, float]:
    """Fills the step's token budget with prompts in order of arrival.

    Returns:
        Prefill tokens of the step, and what they take for their own context. [tokens, s]
    """
    running = state.running[replica]
    drafts = drafted(tables, load, state, replica)
    budget = float(tables.max_batched_tokens - running - drafts)
    room = min(budget, tables.chunk_tokens[-1])
    taken = 0.0
    attending_s = 0.0
    ending = 0
    while room > 0 and state.head[replica] != NOBODY:
        request = state.head[replica]
        if state.under_way[replica] == 0 and not admit(
            tables, load, state, seen, replica, running + ending
        ):
            break
        tokens = min(state.todo[request], room)
        attending_s += own_s(tables, tokens, state.before[request])
        state.todo[request] -= tokens
        state.before[request] += tokens
        taken += tokens
        room -= tokens
        if state.todo[request] == 0:
            ending += 1
            advance(state, replica)
    return taken, attending_s


@jit
def admit(tables: Tables, load: Load, state: State, seen: Seen, replica: int, present: int) -> bool:
    """Reserves cache for the whole prompt at the head, if a place and the cache are free.

    Args:
        tables: The engine.
        load: The requests.
        state: Changed.
        seen: Changed.
        replica: Index.
        present: Sequences decoding and prompts that end in this step.
    """
    request = state.head[replica]
    whole = state.before[request] + state.todo[request]
    if present >= tables.max_batch:
        return False
    if slots(tables, load, state, replica) + whole > tables.cache_tokens:
        return False
    state.prompts[replica] += whole
    state.under_way[replica] = 1
    if math.isnan(seen.queue_s[request]):
        seen.queue_s[request] = state.end_s[replica] - load.arrival_s[request]
        seen.prefill_alone_s[request] = alone_s(tables, state.todo[request], state.before[request])
    return True


@jit
def advance(state: State, replica: int) -> None:
    """The head's prompt ends in this step: the next that waits becomes head."""
    state.under_way[replica] = 0
    request = state.after[state.head[replica]]
    while request != NOBODY and state.finished[request] == 1:
        request = state.after[request]
    state.head[replica] = request
