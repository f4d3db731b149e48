"""Servers with one queue in front: who is free first serves who came first."""

from capplan.physics.surface import Array
from capplan.simulator.jit import jit


@jit
def fill_starts(arrival_s: Array, service_s: Array, free_s: Array, starts_s: Array) -> None:
    """Fills `starts_s`, customer by customer; `free_s` is a heap of when each server is free."""
    servers = len(free_s)
    for customer in range(len(arrival_s)):
        start_s = max(arrival_s[customer], free_s[0])
        starts_s[customer] = start_s
        # The server at the root takes it and sinks to where its new time belongs.
        end_s = start_s + service_s[customer]
        place, child = 0, 1
        while child < servers:
            if child + 1 < servers and free_s[child + 1] < free_s[child]:
                child += 1
            if end_s <= free_s[child]:
                break
            free_s[place] = free_s[child]
            place, child = child, 2 * child + 1
        free_s[place] = end_s
