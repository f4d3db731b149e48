"""One replica under load: the function the planner is handed."""

from capplan.physics.engine import Engine, Outcome, Requests
from capplan.simulator.fleet import simulate_fleet
from capplan.simulator.jit import compiled

__all__ = ["compiled", "simulate"]


def simulate(engine: Engine, requests: Requests, rate_per_s: float) -> Outcome:
    """Runs requests at a rate [1/s] through one engine, first come first served.

    Discrete events, one a step: continuous batching with chunked prefill under a token budget, a
    batch ceiling, and a cache that preempts its newest sequence when it overflows. An overloaded
    run ends too: arrivals stop and the queue drains.

    Source:
        The scheduling is vLLM's V1 scheduler: decoding first, prompts in order, none admitted in
        a step that preempts.
    """
    return simulate_fleet(engine, requests, rate_per_s, replicas=1)
