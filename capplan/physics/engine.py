"""One engine and the requests it gets, as plain arrays: what a simulation of the load needs.

The planner fills these in and is handed a function that runs them, so that it knows nothing of
the simulator but this.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capplan.physics.surface import Array

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Engine:
    """What a step takes, by whole batch, and what the engine was told.

    V variants (draft lengths), N the largest batch, C knots of context, P knots of chunk size.

    Attributes:
        draft_tokens: Draft length of each variant. [V]
        variant_by_batch: Which variant runs while 0, 1, … N sequences decode. [N + 1]
        context_tokens: Knots of the mean context of decoding sequences, rising. [C]
        step_s: A round without prefill: step and drafting; nought at batch 0. Between knots of
            context it is read straight, outside them at the nearest. [V, N + 1, C]
        draft_s: The drafting within step_s, by the sequences that draft. [V, N + 1]
        chunk_tokens: Knots of the prefill tokens of one step, 0 first, rising. [P]
        chunk_s: What they add to a step, 0 first; at batch 0 what they take alone.
            [V, N + 1, P]
        own_tokens: Knots of the size of one prompt's chunk, rising. [T]
        own_cached_tokens: Knots of that prompt's context before the chunk, 0 first, rising. [H]
        own_s: Extra time of such a chunk for attending to its own context, 0 first; a chunk
            smaller than the first knot takes its part of it. [T, H]
        max_batched_tokens: Token budget of a step, verify and prefill tokens together.
        cache_tokens: Tokens of context that fit.
        saved_s: By how much each sequence that goes without drafts shortens a round; None where
            all draft. [V, N + 1]
    """

    draft_tokens: Indices
    variant_by_batch: Indices
    context_tokens: Array
    step_s: Array
    draft_s: Array
    chunk_tokens: Array
    chunk_s: Array
    own_tokens: Array
    own_cached_tokens: Array
    own_s: Array
    max_batched_tokens: int
    cache_tokens: float
    saved_s: Array | None = None

    @property
    def max_batch(self) -> int:
        """Most sequences that decode at once, N."""
        return len(self.variant_by_batch) - 1


@dataclass(frozen=True)
class Requests:
    """Requests in order of arrival.

    K kinds of acceptance: requests of a kind emit alike. Kinds share progress clocks by group.

    Attributes:
        arrival_s: In units of the mean gap: divided by a rate these are seconds. [requests]
        prefill_tokens: Prompt tokens to process. [requests]
        cached_tokens: Prompt tokens found in the cache. [requests]
        output_tokens: At least 1; the first comes from the prefill. [requests]
        traffic_class: Index of the class. [requests]
        kind: Index of the acceptance kind. [requests]
        noise: Standard normal draws: the luck of one answer's rounds. [requests]
        tokens_per_round: Mean tokens of one round, by kind and variant. [K, V]
        second_moment: Mean square of them. [K, V]
        group: Progress clock of each kind, from 0. [K]
        group_tokens: Tokens a round by which a group's clock moves. [groups, V]
        undrafted_group: The group whose requests go without drafts beside others' drafts; -1 for
            none.
    """

    arrival_s: Array
    prefill_tokens: Array
    cached_tokens: Array
    output_tokens: Array
    traffic_class: Indices
    kind: Indices
    noise: Array
    tokens_per_round: Array
    second_moment: Array
    group: Indices
    group_tokens: Array
    undrafted_group: int = -1


@dataclass(frozen=True)
class Outcome:
    """What happened to each request, and to the engine over time.

    What of `decode_s` is neither target, drafting nor interference was lost to preemption: from
    the loss of the cache to the token that ends its recomputation.

    Attributes:
        arrival_s: When the request came. [requests]
        ttft_s: Arrival to first token. [requests]
        decode_s: First token to last. [requests]
        queue_s: Arrival to the step that takes up the prompt's first chunk. [requests]
        prefill_alone_s: What the prompt's chunks would have taken on an idle engine. [requests]
        preemptions: Times the request lost its cache. [requests]
        target_s: Part of decode_s in steps of the target. [requests]
        draft_s: Part of it in drafting. [requests]
        interference_s: Part of it in the prefill chunks of others. [requests]
        rounds: Steps while the request decoded. [requests]
        mean_batch: Over time, idle time included.
        rounds_by_batch: Steps run at each number of decoding sequences. [N + 1]
        time_by_batch_s: Time spent at each. [N + 1]
        gap_edges_s: Edges of the histogram of step durations, rising. [bins + 1]
        gaps: Gaps between chunks that streams saw, by duration. [bins]
        makespan_s: First arrival to last token.
    """

    arrival_s: Array
    ttft_s: Array
    decode_s: Array
    queue_s: Array
    prefill_alone_s: Array
    preemptions: Indices
    target_s: Array
    draft_s: Array
    interference_s: Array
    rounds: Indices
    mean_batch: float
    rounds_by_batch: Array
    time_by_batch_s: Array
    gap_edges_s: Array
    gaps: Array
    makespan_s: float

    def per_s(self, amounts: Array, from_s: float, to_s: float) -> float:
        """What finished requests add up to a second, such as their output tokens.

        Args:
            amounts: Of each request. [requests]
            from_s: Those that finish after this
            to_s: and until this are counted.
        """
        end_s = self.arrival_s + self.ttft_s + self.decode_s
        inside = (end_s > from_s) & (end_s <= to_s)
        return float(amounts[inside].sum() / (to_s - from_s))


Simulate = Callable[[Engine, Requests, float], Outcome]
"""Runs requests at a rate [1/s] through one engine, first come first served."""

SimulateSplit = Callable[[Engine, Engine, Requests, float, int | None, Array], Outcome]
"""Runs requests at a rate [1/s] through a number of prefill engines, None for as many as it takes
that none waits, and one decode replica; contexts take the last argument to travel [s]."""

Starts = Callable[[Array, Array, int], Array]
"""When each customer's service starts: from arrivals [s], services [s] and the servers."""
