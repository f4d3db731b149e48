"""A binary heap of sequences over plain arrays: who finishes decoding first.

Each group of sequences has a row of `heap` and its length in `size`; `target` ranks them.
"""

from capplan.physics.engine import Indices
from capplan.physics.surface import Array
from capplan.simulator.jit import jit


@jit
def push(heap: Indices, length: int, target: Array, request: int) -> None:
    """Adds a sequence to a row that holds `length`."""
    place = length
    while place > 0:
        parent = (place - 1) // 2
        if target[heap[parent]] <= target[request]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = request


@jit
def remove(heap: Indices, length: int, target: Array, place: int) -> None:
    """Takes the sequence at `place` out of a row that holds `length`."""
    mover = heap[length - 1]
    if place == length - 1:
        return
    if place > 0 and target[mover] < target[heap[(place - 1) // 2]]:
        # It comes from another branch and belongs above: shift parents down to here.
        push(heap, place, target, mover)
        return
    child = 2 * place + 1
    while child < length - 1:
        if child + 1 < length - 1 and target[heap[child + 1]] < target[heap[child]]:
            child += 1
        if target[mover] <= target[heap[child]]:
            break
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = mover


@jit
def newest(heap: Indices, length: int) -> int:
    """Place of the request that came last among the first `length`; they must not be none."""
    place = 0
    for other in range(1, length):
        if heap[other] > heap[place]:
            place = other
    return place
