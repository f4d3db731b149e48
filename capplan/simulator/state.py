"""What the kernel works on: arrays in named tuples, which numba and plain Python both take."""

from typing import NamedTuple

import numpy as np

from capplan.physics.engine import Engine, Indices, Requests
from capplan.physics.surface import Array

NOBODY = -1
PARTS = 4
TARGET, DRAFT, INTERFERENCE, ROUNDS = range(PARTS)
GAP_BINS = 2000
SHORTEST_GAP_S, LONGEST_GAP_S = 1e-5, 1e4
DECODING = ("began", "target", "base", "rate", "left", "emitted_s")
BINS_PER_E_FOLD = GAP_BINS / np.log(LONGEST_GAP_S / SHORTEST_GAP_S)


class Tables(NamedTuple):
    """The engine; fields as in `physics.engine.Engine`."""

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
    saved_s: Array
    max_batch: int


class Load(NamedTuple):
    """The requests; fields as in `physics.engine.Requests`, but arrivals are in seconds."""

    arrival_s: Array
    output_tokens: Array
    kind: Indices
    noise: Array
    tokens_per_round: Array
    second_moment: Array
    group: Indices
    group_tokens: Array
    undrafted_group: int


class State(NamedTuple):
    """What changes from step to step: R replicas, and the requests given to them.

    A replica admits its requests in order of arrival and gives up the newest first, so the ones
    it holds always came before the ones that wait: the queue is the chain `after` from `head` on
    without the finished, and going back to an earlier head puts a request in front again.

    Attributes:
        arrived: Requests let in so far. [1]
        unfinished: Requests without their last token. [1]
        end_s: End of the running step; infinite while idle. [R]
        variant: Variant of the running step. [R]
        running: Sequences that decode. [R]
        outstanding: Requests given to the replica and not finished. [R]
        context: Context of the decoding sequences, together. [R, tokens]
        prompts: Whole context of the prompts taken up, reserved for them. [R, tokens]
        under_way: 1 where the head's prompt is partly processed. [R]
        first: Head when the running step began: from here to the head, prompts end. [R]
        head: Next request to process. [R]
        last: Latest request given to the replica. [R]
        clock: Tokens by which each acceptance group has moved. [R · groups]
        pace: Sum of `rate` over a group's sequences. [R · groups]
        size: Sequences in each group's heap. [R · groups]
        heap: Sequences, soonest `target` first. [R · groups, N]
        after: Next request of the same replica. [requests]
        finished: [requests]
        todo: Prompt tokens still to process. [requests]
        before: Context already in the cache before them. [requests]
        began: The group's clock when decoding began. [requests]
        target: The group's clock at which it ends. [requests]
        base: Context when decoding began. [requests]
        rate: Own tokens for one token of the group's clock. [requests]
        left: Tokens to decode when decoding began, with the request's luck. [requests]
        emitted_s: When the last token came before decoding stopped. [requests]
        spent: Target, drafting, interference [s] and steps of the replica while it decoded, from
            its beginning on. [R, PARTS]
    """

    arrived: Indices
    unfinished: Indices
    end_s: Array
    variant: Indices
    running: Indices
    outstanding: Indices
    context: Array
    prompts: Array
    under_way: Indices
    first: Indices
    head: Indices
    last: Indices
    clock: Array
    pace: Array
    size: Indices
    heap: Indices
    after: Indices
    finished: Indices
    todo: Array
    before: Array
    began: Array
    target: Array
    base: Array
    rate: Array
    left: Array
    emitted_s: Array
    spent: Array


class Seen(NamedTuple):
    """What is kept; fields as in `physics.engine.Outcome`, times NaN until known.

    Attributes:
        parts: Target, drafting, interference [s] and steps while the request decoded; less what
            its replica had spent before, while it decodes. [requests, PARTS]
    """

    ttft_s: Array
    decode_s: Array
    queue_s: Array
    prefill_alone_s: Array
    preemptions: Indices
    rounds_by_batch: Array
    time_by_batch_s: Array
    gaps: Array
    parts: Array


def tables_of(engine: Engine) -> Tables:
    """The engine as the kernel takes it."""
    return Tables(
        draft_tokens=_indices(engine.draft_tokens),
        variant_by_batch=_indices(engine.variant_by_batch),
        context_tokens=_amounts(engine.context_tokens),
        step_s=_amounts(engine.step_s),
        draft_s=_amounts(engine.draft_s),
        chunk_tokens=_amounts(engine.chunk_tokens),
        chunk_s=_amounts(engine.chunk_s),
        own_tokens=_amounts(engine.own_tokens),
        own_cached_tokens=_amounts(engine.own_cached_tokens),
        own_s=_amounts(engine.own_s),
        max_batched_tokens=int(engine.max_batched_tokens),
        cache_tokens=float(engine.cache_tokens),
        saved_s=_amounts(
            np.zeros_like(engine.draft_s) if engine.saved_s is None else engine.saved_s
        ),
        max_batch=int(engine.max_batch),
    )


def load_of(requests: Requests, rate_per_s: float) -> Load:
    """The requests as the kernel takes them, arriving at a rate [1/s]."""
    return Load(
        arrival_s=_amounts(requests.arrival_s) / rate_per_s,
        output_tokens=_amounts(requests.output_tokens),
        kind=_indices(requests.kind),
        noise=_amounts(requests.noise),
        tokens_per_round=_amounts(requests.tokens_per_round),
        second_moment=_amounts(requests.second_moment),
        group=_indices(requests.group),
        group_tokens=_amounts(requests.group_tokens),
        undrafted_group=int(requests.undrafted_group),
    )


def fresh_state(engine: Engine, requests: Requests, replicas: int) -> State:
    """Idle replicas and requests that have not arrived."""
    count, rows = len(requests.arrival_s), replicas * len(requests.group_tokens)
    return State(
        arrived=_none(1),
        unfinished=np.array([count]),
        end_s=np.full(replicas, np.inf),
        variant=_none(replicas),
        running=_none(replicas),
        outstanding=_none(replicas),
        context=np.zeros(replicas),
        prompts=np.zeros(replicas),
        under_way=_none(replicas),
        first=_none(replicas) + NOBODY,
        head=_none(replicas) + NOBODY,
        last=_none(replicas) + NOBODY,
        clock=np.zeros(rows),
        pace=np.zeros(rows),
        size=_none(rows),
        heap=np.zeros((rows, engine.max_batch), dtype=np.int64),
        after=_none(count) + NOBODY,
        finished=_none(count),
        todo=_amounts(requests.prefill_tokens).copy(),
        before=_amounts(requests.cached_tokens).copy(),
        spent=np.zeros((replicas, PARTS)),
        **{name: np.zeros(count) for name in DECODING},
    )


def nothing_seen(engine: Engine, count: int) -> Seen:
    """Room for the outcome of `count` requests."""
    times = ("ttft_s", "decode_s", "queue_s", "prefill_alone_s")
    return Seen(
        **{name: np.full(count, np.nan) for name in times},
        preemptions=np.zeros(count, dtype=np.int64),
        rounds_by_batch=np.zeros(engine.max_batch + 1),
        time_by_batch_s=np.zeros(engine.max_batch + 1),
        gaps=np.zeros(GAP_BINS),
        parts=np.zeros((count, PARTS)),
    )


# One type for one field: the kernel is compiled anew for every other set of types.
def _indices(values: Indices) -> Indices:
    return np.ascontiguousarray(values, dtype=np.int64)


def _amounts(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _none(length: int) -> Indices:
    return np.zeros(length, dtype=np.int64)
