"""Prefill and decoding on engines of their own."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.engine import Engine, Indices, Outcome, Requests
from capplan.physics.surface import Array
from capplan.simulator.fleet import simulate_fleet
from capplan.simulator.state import tables_of

_DECODED = ("decode_s", "preemptions", "target_s", "draft_s", "interference_s", "rounds")
"""What the decode replica says of each request."""


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
    from capplan.simulator import servers as pool

    starts = np.empty(len(arrival_s))
    arrival, service = (np.ascontiguousarray(t, dtype=float) for t in (arrival_s, service_s))
    pool.fill_starts(arrival, service, np.full(servers, -np.inf), starts)
    return starts


def simulate_split(
    prefill: Engine,
    decode: Engine,
    requests: Requests,
    rate_per_s: float,
    servers: int | None,
    transfer_s: ArrayLike,
) -> Outcome:
    """Runs requests through a pool of prefill engines that feeds one decode replica.

    A prefill engine takes one prompt at a time. Its context then travels to the decode replica,
    over a link that carries one after the other, and the replica runs the prompt's last token
    itself, as vLLM's connectors do, and so gives all tokens, the first too. A sequence preempted
    there is recomputed there.

    Args:
        prefill: Each engine of the pool; its tables at batch 0 count.
        decode: The decode replica.
        requests: As for `simulate`.
        rate_per_s: Of all requests. [1/s]
        servers: Prefill engines; None for so many that no prompt waits.
        transfer_s: Time for a context to travel. [scalar or requests]

    Returns:
        Outcome of the decode replica, with times from the arrival at the pool: `ttft_s` is wait,
        prefill, transfer and first step together; `queue_s` the wait for a prefill engine.
    """
    arrival_s = requests.arrival_s / rate_per_s
    prefill_s = prefill_times_s(prefill, requests)
    begun_s = arrival_s if servers is None else starts_s(arrival_s, prefill_s, servers)
    landed_s = _landed_s(begun_s + prefill_s, transfer_s)
    order = np.argsort(landed_s, kind="stable")
    outcome = simulate_fleet(decode, _handed_over(requests, landed_s, order), 1.0, 1)
    back = np.argsort(order)
    ttft_s = landed_s - arrival_s + outcome.ttft_s[back]
    return replace(
        outcome,
        arrival_s=arrival_s,
        ttft_s=ttft_s,
        queue_s=begun_s - arrival_s,
        prefill_alone_s=prefill_s,
        makespan_s=float(np.max(arrival_s + ttft_s + outcome.decode_s[back]) - arrival_s[0]),
        **{name: getattr(outcome, name)[back] for name in _DECODED},
    )


def _landed_s(ready_s: Array, transfer_s: ArrayLike) -> Array:
    """When each context has arrived: those that are ready first travel first. [requests]."""
    order = np.argsort(ready_s, kind="stable")
    lasting_s = np.broadcast_to(np.asarray(transfer_s, dtype=float), len(order))[order]
    landed_s = np.empty(len(order))
    landed_s[order] = starts_s(ready_s[order], lasting_s, 1) + lasting_s
    return landed_s


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
