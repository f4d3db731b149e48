"""A replica that always has so many requests in flight: benchmarks, batch jobs.

The next request comes when one is finished, too late for the step that begins at that moment. A
request is decoding, or it waits or is in prefill. Steps run back to back, so the rate follows from
the mean batch of a round as on the open curve, λ = B / (K T0(B) + B ΔT); what has to be found is
how many are held up before they decode. That depends on whether answers differ in length.

Source:
    Rate and batch balance as in `physics.equilibrium`. A fixed population that goes round is the
    machine interference problem: Gross and Harris, Fundamentals of Queueing Theory, finite-source
    queues.
"""

from dataclasses import dataclass

import numpy as np

from capplan.physics.surface import Array


@dataclass(frozen=True)
class ByBatch:
    """An engine and its requests while 0, 1, … S sequences decode; S is the most that may.

    Attributes:
        rounds: Rounds of an answer, K, at least a part of one. [S + 1]
        round_s: A round without prefill, T0; nought at 0. [S + 1]
        prefill_s: Engine time that a prompt adds, ΔT. [S + 1]
        prefill_steps: Steps that carry a lone prompt, at least 1. [S + 1]
        prefill_share: Prompt tokens over those that fit into one step. [S + 1]
    """

    rounds: Array
    round_s: Array
    prefill_s: Array
    prefill_steps: Array
    prefill_share: Array


@dataclass(frozen=True)
class ClosedLoop:
    """The steady state, means.

    Attributes:
        batch: Sequences decoding, over time.
        rate_per_s: Requests finished.
        round_s: From one round of a sequence to its next, the prompts of others included.
        ttft_s: From coming in to the first token.
    """

    batch: float
    rate_per_s: float
    round_s: float
    ttft_s: float


def mingled(engine: ByBatch, in_flight: int) -> ClosedLoop:
    """Answers of different lengths: requests end, and their followers come, spread over time.

    The number that decodes, n, is a birth-death chain. Where w prompts may be taken up they need
    c steps, as many as their tokens fill but no fewer than one prompt alone, which take
    c T0(n) + w ΔT(n) and move every sequence by c rounds. One step more is lost to coming late,
    unless others wait anyway. How decoding ends is insensitive to the distribution of lengths, as
    in processor sharing; the wait for prefill is not: equal prompts wait less.

    Args:
        engine: The engine and its requests.
        in_flight: At least 1.
    """
    most = min(in_flight, len(engine.round_s) - 1)
    decoding = np.arange(most + 1)
    prompts = most - decoding
    alone = engine.prefill_steps[: most + 1] + _late(engine, in_flight)
    steps = np.maximum(alone, prompts * engine.prefill_share[: most + 1])
    steps[most] = 1.0
    spell_s = steps * engine.round_s[: most + 1] + prompts * engine.prefill_s[: most + 1]
    rounds_per_s = steps / spell_s
    ending = decoding * rounds_per_s / engine.rounds[: most + 1]
    beginning = prompts / spell_s
    logs = np.concatenate([[0.0], np.cumsum(np.log(beginning[:-1] / ending[1:]))])
    part = np.exp(logs - logs.max())
    part /= part.sum()
    batch, rate = float(part @ decoding), float(part @ ending)
    round_s = batch / float(part @ (decoding * rounds_per_s))
    return ClosedLoop(batch, rate, round_s, (in_flight - batch) / rate)


def lockstep(engine: ByBatch, in_flight: int) -> ClosedLoop:
    """Equal prompts and equal answers, plain decoding: requests go round as one train.

    Prompts that came together are taken up one after another, and so the answers end, one after
    another, and the next prompts come: each waits for its forerunner's last chunk and sees fewer
    prompts of others while it decodes. A cycle of M steps carries every prompt once.

    Args:
        engine: The engine and its requests.
        in_flight: At least 1.
    """
    most, late = min(in_flight, len(engine.round_s) - 1), _late(engine, in_flight)
    decoding = np.arange(1, most + 1)
    rounds, own_steps = engine.rounds[decoding], engine.prefill_steps[decoding]
    # Whole prompts, where a step holds some: who falls behind by a step does not catch up.
    share = engine.prefill_share[decoding]
    in_step = np.where(share <= 1, np.floor(1 / share), 1 / share)
    beside = np.minimum(np.maximum(own_steps * in_step, 1.0), most)
    cycle = np.where(beside < most, np.maximum(rounds + own_steps + late, most / in_step), rounds)
    # The first of the train has no forerunner to wait for.
    awaited = late * np.minimum(in_step, most - beside) * (1 - beside / most)
    seen = np.minimum(most - beside - awaited, rounds * in_step)
    prefill_s, round_s = engine.prefill_s[decoding], engine.round_s[decoding]
    rates = most / (cycle * round_s + most * prefill_s)
    stretched_s = round_s + seen * prefill_s / rounds
    # Everything is read at the mean batch of a cycle's steps.
    place = np.interp(0.0, decoding - most * rounds / cycle, decoding)
    rate, stretched, ended = (
        float(np.interp(place, decoding, values)) for values in (rates, stretched_s, rounds)
    )
    batch = rate * ended * stretched
    return ClosedLoop(batch, rate, stretched, (in_flight - batch) / rate)


def _late(engine: ByBatch, in_flight: int) -> int:
    """Steps that a follower misses: with others waiting, they take its forerunner's place."""
    return 1 if in_flight < len(engine.round_s) else 0
