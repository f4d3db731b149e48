"""Prefill and decoding on engines of their own."""

import heapq
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.engine import Engine, Indices, Outcome, Requests
from capplan.physics.surface import Array
from capplan.simulator.fleet import simulate_fleet
from capplan.simulator.state import tables_of


def prefill_times_s(engine: Engine, requests: Requests) -> Array:
    """What each prompt takes on an engine that does nothing else [s]. [requests]."""
    from capplan.simulator import timing

    seconds = np.zeros(len(requests.arrival_s))
    prefill, cached = (
        np.asarray(tokens, dtype=float)
        for tokens in (requests.prefill_tokens, requests.cached_tokens)
    )
    timing.each_alone_s(tables_of(engine), prefill, cached, seconds)
    return seconds


def starts_s(arrival_s: Array, service_s: Array, servers: int) -> Array:
    """When each customer's service starts: first come first served, any free server.

    Args:
        arrival_s: Rising. [customers, s]
        service_s: [customers, s]
        servers: At least 1.

    Returns:
        [customers, s]
    """
    free = [-np.inf] * servers
    starts = np.empty(len(arrival_s))
    for i, (arrival, service) in enumerate(zip(arrival_s, service_s, strict=True)):
        starts[i] = max(arrival, free[0])
        heapq.heapreplace(free, starts[i] + service)
    return starts


def simulate_split(
    prefill: Engine,
    decode: Engine,
    requests: Requests,
    rate_per_s: float,
    servers: int,
    transfer_s: ArrayLike,
) -> Outcome:
    """Runs requests through a pool of prefill engines that feeds one decode replica.

    A prefill engine takes one prompt at a time. Its context then travels to the decode replica,
    which runs the prompt's last token itself, as vLLM's connectors do, and so gives all tokens,
    the first too. A sequence preempted there is recomputed there.

    Args:
        prefill: Each engine of the pool; its tables at batch 0 count.
        decode: The decode replica.
        requests: As for `simulate`.
        rate_per_s: Of all requests. [1/s]
        servers: Prefill engines.
        transfer_s: From a prompt's end to its context's arrival. [scalar or requests]

    Returns:
        Outcome of the decode replica, with times from the arrival at the pool: `ttft_s` is wait,
        prefill, transfer and first step together; `queue_s` the wait for a prefill engine.
    """
    arrival_s = requests.arrival_s / rate_per_s
    prefill_s = prefill_times_s(prefill, requests)
    queue_s = starts_s(arrival_s, prefill_s, servers) - arrival_s
    before_s: Array = queue_s + prefill_s + np.asarray(transfer_s, dtype=float)
    order = np.argsort(arrival_s + before_s, kind="stable")
    outcome = simulate_fleet(decode, _handed_over(requests, arrival_s + before_s, order), 1.0, 1)
    back = np.argsort(order)
    ttft_s = before_s + outcome.ttft_s[back]
    return replace(
        outcome,
        ttft_s=ttft_s,
        decode_s=outcome.decode_s[back],
        queue_s=queue_s,
        prefill_alone_s=prefill_s,
        preemptions=outcome.preemptions[back],
        makespan_s=float(np.max(arrival_s + ttft_s + outcome.decode_s[back]) - arrival_s[0]),
    )


def _handed_over(requests: Requests, arrival_s: Array, order: Indices) -> Requests:
    """The requests as the decode replica gets them: all but the last prompt token cached."""
    prompt = requests.prefill_tokens + requests.cached_tokens
    return replace(
        requests,
        arrival_s=arrival_s[order],
        prefill_tokens=np.ones(len(order)),
        cached_tokens=prompt[order] - 1,
        output_tokens=requests.output_tokens[order],
        traffic_class=requests.traffic_class[order],
        kind=requests.kind[order],
        noise=requests.noise[order],
    )
