"""How fast a replica is simulated: compiled, as plain Python, and as a plain simpy model.

A dense 70B on four H200 serving chat: about 50 sequences decode, outputs of 400 tokens. Prints
requests simulated per second of one core, warm, the fastest of several runs. The bar is 500,000
compiled; the ratio to simpy hardly depends on the machine.
"""

import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

from capplan.physics.engine import Engine, Requests
from capplan.simulator.arrivals import poisson
from capplan.simulator.replica import compiled, simulate

RATE_PER_S = 9.0
BUDGET, MAX_BATCH = 2048, 256
BAR_PER_S = 500_000
FIXED_S, SEQUENCE_S, CONTEXT_S, TOKEN_S = 7.5e-3, 5e-5, 1.2e-8, 2.2e-5


def dense_chat() -> Engine:
    """Step 7.5 ms + 50 µs a sequence + its context, prefill 22 µs a token."""
    batch = np.arange(MAX_BATCH + 1)
    context = np.array([0.0, 16_000.0])
    chunks = np.array([0.0, 16, 64, 256, 512, 1024, BUDGET])
    step_s = FIXED_S + batch[:, None] * (SEQUENCE_S + context * CONTEXT_S)
    return Engine(
        draft_tokens=np.zeros(1, dtype=np.int64),
        variant_by_batch=np.zeros(MAX_BATCH + 1, dtype=np.int64),
        context_tokens=context,
        step_s=np.where(batch[:, None] > 0, step_s, 0.0)[None],
        draft_s=np.zeros((1, MAX_BATCH + 1)),
        chunk_tokens=chunks,
        chunk_s=np.broadcast_to(TOKEN_S * chunks, (1, MAX_BATCH + 1, len(chunks))),
        own_tokens=np.array([16.0, BUDGET]),
        own_cached_tokens=np.array([0.0, 64_000.0]),
        own_s=np.zeros((2, 2)),
        max_batched_tokens=BUDGET,
        cache_tokens=1e6,
    )


def chat(count: int) -> Requests:
    """Prompts of 1000 tokens and outputs of 400 on average, lognormal of spread 1."""
    rng = np.random.default_rng(0)
    spread = np.sqrt(np.log(2))

    def lengths(mean: float) -> np.ndarray:
        drawn = rng.lognormal(np.log(mean) - spread**2 / 2, spread, count)
        return np.clip(np.rint(drawn), 1, 30_000)

    one, first = np.ones((1, 1)), np.zeros(count, dtype=np.int64)
    return Requests(
        arrival_s=poisson(count, rng),
        prefill_tokens=lengths(1000),
        cached_tokens=np.zeros(count),
        output_tokens=lengths(400),
        traffic_class=first,
        kind=first,
        noise=np.zeros(count),
        tokens_per_round=one,
        second_moment=one,
        group=np.zeros(1, dtype=np.int64),
        group_tokens=one,
    )


Step = Generator[simpy.Event, Any, None]


@dataclass
class Sequence:
    """One request in the simpy model."""

    place: int
    prompt: float
    left: float
    context: float = 0.0
    first_s: float = 0.0


class SimpyReplica:
    """The same replica as simpy users write it: one process a request, one for the engine."""

    def __init__(self, requests: Requests) -> None:
        self.environment = simpy.Environment()
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.decode_s = np.zeros(len(requests.arrival_s))
        self.awake = self.environment.event()
        for place in range(len(self.decode_s)):
            self.environment.process(self.request(requests, place))
        self.environment.process(self.engine())

    def request(self, requests: Requests, place: int) -> Step:
        """Comes, and waits."""
        yield self.environment.timeout(requests.arrival_s[place] / RATE_PER_S)
        prompt, output = requests.prefill_tokens[place], requests.output_tokens[place]
        self.waiting.append(Sequence(place, prompt, output - 1, context=prompt + 1))
        if not self.awake.triggered:
            self.awake.succeed()

    def engine(self) -> Step:
        """Steps back to back while there is anything to do."""
        while True:
            if not self.running and not self.waiting:
                self.awake = self.environment.event()
                yield self.awake
            batch = len(self.running)
            taken, ended = self.prefill(BUDGET - batch)
            context = sum(sequence.context for sequence in self.running)
            step_s = FIXED_S + SEQUENCE_S * batch + CONTEXT_S * context if batch else 0.0
            yield self.environment.timeout(step_s + TOKEN_S * taken)
            self.emit()
            for sequence in ended:
                sequence.first_s = self.environment.now
            self.running += [sequence for sequence in ended if sequence.left > 0]

    def prefill(self, room: float) -> tuple[float, list[Sequence]]:
        """Tokens of the step, and whose prompts end in it."""
        taken, ended = 0.0, []
        while room > 0 and self.waiting and len(self.running) + len(ended) < MAX_BATCH:
            tokens = min(room, self.waiting[0].prompt)
            self.waiting[0].prompt -= tokens
            taken, room = taken + tokens, room - tokens
            if self.waiting[0].prompt == 0:
                ended.append(self.waiting.popleft())
        return taken, ended

    def emit(self) -> None:
        """One token each."""
        for sequence in self.running:
            sequence.left -= 1
            sequence.context += 1
            if sequence.left == 0:
                self.decode_s[sequence.place] = self.environment.now - sequence.first_s
        self.running = [sequence for sequence in self.running if sequence.left > 0]


def simpy_mean_decode_s(requests: Requests) -> float:
    """Mean decode time of the simpy model."""
    replica = SimpyReplica(requests)
    replica.environment.run()
    return float(replica.decode_s.mean())


def requests_per_s(run: Callable[[], object], count: int, runs: int) -> float:
    """Requests over the processor time of the fastest run."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return count / best


def measure(count: int, runs: int) -> tuple[float, float, float]:
    """Requests per second, mean decode time and mean batch of the product."""
    engine, requests = dense_chat(), chat(count)
    outcome = simulate(engine, requests, RATE_PER_S)
    speed = requests_per_s(lambda: simulate(engine, requests, RATE_PER_S), count, runs)
    return speed, float(outcome.decode_s.mean()), outcome.mean_batch


def main() -> None:
    """Prints one JSON object."""
    if "--plain" in sys.argv:
        print(json.dumps(measure(5_000, 2)))
        return
    speed, _, batch = measure(200_000, 5)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, __file__, "--plain"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    plain, plain_decode_s, _ = json.loads(done.stdout)
    few = chat(5_000)
    decode_s = simpy_mean_decode_s(few)
    simpy_speed = requests_per_s(lambda: simpy_mean_decode_s(few), 5_000, 2)
    print(
        json.dumps(
            {
                "compiled": compiled(),
                "mean_batch": round(batch, 1),
                "requests_per_s": round(speed),
                "bar_per_s": BAR_PER_S,
                "bar_kept": speed >= BAR_PER_S,
                "plain_python_requests_per_s": round(plain),
                "simpy_requests_per_s": round(simpy_speed),
                "over_plain_python": round(speed / plain),
                "over_simpy": round(speed / simpy_speed),
                "mean_decode_differs_from_simpy_by": round(plain_decode_s / decode_s - 1, 12),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
