"""A replica planned by the chain against the same replica simulated token by token.

The simulation is written here from the engine's rules alone: rounds back to back, a token budget
that prompts share with the running batch, first come first served, drafts kept by coin tosses.
It shares no code with capplan. Means are compared closely; the planner's percentiles are stated
factors, so only its mean-based parts are held to the simulation.
"""

import random
from collections import deque

import numpy as np
import pytest

from capplan.planner.chain import Asked, outcomes
from capplan.records.service import OperatingPoint
from straight import make_fleet, make_forecast, make_profile

A_S, B_S, PREFILL_S = 0.010, 0.0001, 2e-5
BUDGET = 2048
CHANCES = (0.8, 0.8, 0.8)
REQUESTS = 6000
WARM = REQUESTS // 5


def step_s(batch: float, query: int) -> float:
    return (A_S + B_S * batch) * (1 + 0.1 * (query - 1))


def planned(policy: str, rate: float, prompt: float, output: float) -> OperatingPoint:
    profile = make_profile(
        step_s=step_s,
        draft_s=lambda _, drafts: 0.001 * drafts,
        shares=tuple(np.cumprod(CHANCES).tolist()),
        prefill_s_per_token=PREFILL_S,
        max_batched_tokens=BUDGET,
    )
    asked = make_forecast(
        rates=(rate,),
        prompt=prompt,
        output=output,
        cv=0.8,
        objectives={"ttft_p99_s": 100.0, "tpot_p50_s": 1.0},
    )
    found, _ = outcomes(asked, [profile], make_fleet(), Asked((policy,)))
    return found[0].plan.pools[0].at_peak


def lognormal(rng: np.random.Generator, mean: float, size: int) -> np.ndarray:
    sigma = np.sqrt(np.log1p(0.8**2))
    return np.maximum(np.rint(rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, size)), 1)


class Engine:
    """One replica: a queue of prompts, the running requests, and a clock."""

    def __init__(self, rate: float, prompt: float, output: float, drafts: int) -> None:
        rng = np.random.default_rng(8)
        self.toss = random.Random(8).random
        self.arrivals = np.cumsum(rng.exponential(1 / rate, REQUESTS))
        self.prompts = lognormal(rng, prompt, REQUESTS)
        self.outputs = lognormal(rng, output, REQUESTS)
        self.drafts, self.clock, self.coming = drafts, 0.0, 0
        self.queue: deque[list[float]] = deque()  # [request, prompt tokens left]
        self.running: dict[int, float] = {}  # request to tokens left

    def admit(self) -> None:
        if not self.queue and not self.running:
            self.clock = max(self.clock, self.arrivals[self.coming])
        while self.coming < REQUESTS and self.arrivals[self.coming] <= self.clock:
            self.queue.append([self.coming, self.prompts[self.coming]])
            self.coming += 1

    def fill_budget(self) -> tuple[float, list[int]]:
        """Prompt tokens of this step, first come first served, and the prompts that it ends."""
        room, done = BUDGET - len(self.running) * (self.drafts + 1), []
        chunk = 0.0
        while self.queue and room > chunk:
            taken = min(self.queue[0][1], room - chunk)
            chunk += taken
            self.queue[0][1] -= taken
            if self.queue[0][1] > 0:
                break
            done.append(int(self.queue.popleft()[0]))
        return chunk, done

    def emit(self, request: int) -> float:
        """Tokens that a request gains in a round: its drafts up to the first miss, and one."""
        kept = 0
        while kept < self.drafts and self.toss() < CHANCES[kept]:
            kept += 1
        tokens = min(1.0 + kept, self.running[request])
        self.running[request] -= tokens
        if self.running[request] <= 0:
            del self.running[request]
        return tokens


def simulated(rate: float, prompt: float, output: float, drafts: int) -> dict[str, float]:
    """Mean batch, and time per output token over all tokens."""
    engine = Engine(rate, prompt, output, drafts)
    area = decoded = decoding_s = 0.0
    while engine.coming < REQUESTS or engine.queue or engine.running:
        engine.admit()
        chunk, done = engine.fill_budget()
        batch = len(engine.running)
        lasts = step_s(max(batch, 1), drafts + 1) + PREFILL_S * chunk + 0.001 * drafts
        engine.clock += lasts
        if WARM < engine.coming < REQUESTS:
            area += batch * lasts
        for request in list(engine.running):
            tokens = engine.emit(request)
            if WARM < request < REQUESTS - WARM:
                decoded += tokens
                decoding_s += lasts
        for request in done:
            if engine.outputs[request] > 1:
                engine.running[request] = engine.outputs[request] - 1
    return {
        "batch": area / float(engine.arrivals[-1] - engine.arrivals[WARM]),
        "tpot_s": decoding_s / decoded,
    }


@pytest.mark.parametrize(
    ("policy", "drafts", "rate"), [("plain", 0, 15.0), ("always:3", 3, 15.0), ("always:3", 3, 30.0)]
)
def test_batch_and_time_per_token_are_those_of_the_simulation(policy, drafts, rate):
    prompt, output = 600.0, 150.0
    plan, seen = planned(policy, rate, prompt, output), simulated(rate, prompt, output, drafts)
    assert plan.rate_per_s == rate
    assert plan.batch == pytest.approx(seen["batch"], rel=0.06)
    assert plan.tpot_mean_s == pytest.approx(seen["tpot_s"], rel=0.06)
