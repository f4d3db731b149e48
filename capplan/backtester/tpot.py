"""Time per output token of a closed loop: so many requests always in flight.

Where all are alike they go round as one train, and many short prompts share a step. Where lengths
differ, prompts come one at a time, and those who decode meet each of them. Which of the two a
benchmark ran matters most for short prompts on fast GPUs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from capplan.physics.closed_loop import ByBatch, lockstep, mingled
from capplan.physics.load import Load, decode_load
from capplan.physics.surface import Array

CHUNK_TOKENS: Final = 8192
"""Most prompt tokens of a step, for each copy of attention: what vLLM (max_num_batched_tokens),
SGLang (chunked_prefill_size) and TensorRT-LLM (max_num_tokens) take on GPUs of 80 GB and more."""

TIMED_TOKENS: Final = 16384
"""Longer steps have no tables; copies that prefill together are taken to need their part of it."""


@dataclass(frozen=True)
class Steps:
    """A replica's step times and what it holds."""

    step_s: Callable[[Load], Array]
    """Seconds, shape of the load; NaN outside the tables."""
    capacity_tokens: float
    """Of cache, over the whole replica."""
    copies: int
    """Groups of GPUs with requests of their own."""


@dataclass(frozen=True)
class Requests:
    """What is in flight."""

    in_flight: int
    """Over the whole replica."""
    input_tokens: int
    output_tokens: int
    alike: bool
    """Whether all have these lengths, or lengths near them."""
    held_for: int = 1
    """Prompts that the engine gathers before it takes them up, where so many are in flight."""


def tpot_s(steps: Steps, requests: Requests) -> float:
    """Mean time from a token to the next, the prompts of others included [s].

    The mean context is the prompt and half the answer: of a batch where lengths differ, over time
    where they are alike.

    Args:
        steps: The replica.
        requests: What is in flight; those for which the cache has no room wait.

    Returns:
        Seconds; NaN where a step leaves the tables.
    """
    context = requests.input_tokens + requests.output_tokens / 2
    held = max(1, int(steps.capacity_tokens / context))
    batch = np.arange(min(requests.in_flight, held) + 1, dtype=float)
    # Nothing decodes at batch 0, where a step of one stands in for being outside the tables.
    round_s = steps.step_s(decode_load(np.maximum(batch, 1), context, 1)) * (batch > 0)
    waiting = batch[-1] - batch * (not requests.alike)
    engine = ByBatch(
        rounds=np.full(batch.size, max(1.0, requests.output_tokens - 1.0)),
        round_s=round_s,
        prefill_s=_prompt_s(steps, requests, round_s, np.maximum(waiting, 1.0)),
        prefill_steps=np.full(batch.size, float(ceil(requests.input_tokens / CHUNK_TOKENS))),
        prefill_share=np.full(batch.size, requests.input_tokens / CHUNK_TOKENS / steps.copies),
    )
    if not np.isfinite([engine.round_s, engine.prefill_s]).all():
        return float("nan")
    return (lockstep if requests.alike else mingled)(engine, requests.in_flight).round_s


def _prompt_s(steps: Steps, requests: Requests, round_s: Array, waiting: Array) -> Array:
    """Time that each prompt adds to the steps that carry it, by sequences that decode [s].

    What fits of the prompts that wait goes into one step, each copy of attention taking its own.
    """
    batch, length = np.arange(round_s.size, dtype=float), requests.input_tokens
    context = length + requests.output_tokens / 2
    added_s = np.zeros(batch.size)
    for cached in range(0, length, CHUNK_TOKENS):
        own = min(CHUNK_TOKENS, length - cached)
        # Sequences that decode take their part of the step's tokens.
        fitting = np.maximum((CHUNK_TOKENS - batch / steps.copies) // own, 1.0) * steps.copies
        timed = np.maximum((TIMED_TOKENS - batch) / own, 1.0)
        gathered = np.maximum(waiting, min(requests.held_for, requests.in_flight))
        together = np.minimum(gathered, np.minimum(fitting, timed))
        beside = Load(*np.broadcast_arrays(batch, 1.0, context, own * together, float(cached)))
        added_s += np.maximum(0.0, steps.step_s(beside) - round_s) / together
    return added_s
