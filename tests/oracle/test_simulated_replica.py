"""A replica planned by the chain against the same replica simulated token by token.

The simulation is written here from the engine's rules alone: rounds back to back, a token budget
that prompts share with the running batch, first come first served, drafts kept by coin tosses.
It shares no code with capplan. Means are compared closely; the planner's percentiles are stated
factors, so only its mean-based parts are held to the simulation.
"""

from collections import deque

import numpy as np
import pytest

from capplan.planner.candidate import Candidate, plan_policy
from capplan.planner.demand import demand
from capplan.records.plan import OperatingPoint
from straight import make_fleet, make_forecast, make_profile

A_S, B_S, PREFILL_S = 0.010, 0.0001, 2e-5
BUDGET = 2048
CHANCES = (0.8, 0.8, 0.8)


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
    asked = demand(
        make_forecast(
            rates=(rate,),
            prompt=prompt,
            output=output,
            cv=0.8,
            objectives={"ttft_p99_s": 100.0, "tpot_p50_s": 1.0},
        )
    )
    point = plan_policy(policy, Candidate.of(profile, "eagle", asked), make_fleet(), None).at_peak
    assert point is not None
    return point


def lognormal(rng: np.random.Generator, mean: float, size: int) -> np.ndarray:
    sigma = np.sqrt(np.log1p(0.8**2))
    return np.maximum(np.rint(rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, size)), 1)


def simulated(rate: float, prompt: float, output: float, drafts: int) -> dict[str, float]:
    """Mean batch, and time per output token over all tokens."""
    rng = np.random.default_rng(8)
    requests = 6000
    arrivals = np.cumsum(rng.exponential(1 / rate, requests))
    prompts, outputs = lognormal(rng, prompt, requests), lognormal(rng, output, requests)
    clock, coming = 0.0, 0
    queue: deque[list[float]] = deque()  # [request, prompt tokens left]
    running: dict[int, float] = {}  # request to tokens left
    warm = requests // 5
    area = decoded = decoding_s = 0.0
    while coming < requests or queue or running:
        while coming < requests and arrivals[coming] <= clock:
            queue.append([coming, prompts[coming]])
            coming += 1
        if not queue and not running:
            clock = arrivals[coming]
            continue
        room = BUDGET - len(running) * (drafts + 1)
        chunk, done = 0.0, []
        while queue and room > chunk:
            taken = min(queue[0][1], room - chunk)
            chunk += taken
            queue[0][1] -= taken
            if queue[0][1] > 0:
                break
            done.append(int(queue.popleft()[0]))
        lasts = step_s(max(len(running), 1), drafts + 1) + PREFILL_S * chunk + 0.001 * drafts
        clock += lasts
        if warm < coming < requests:
            area += len(running) * lasts
        for request in list(running):
            emitted = 1
            for chance in CHANCES[:drafts]:
                if rng.random() >= chance:
                    break
                emitted += 1
            emitted = min(emitted, running[request])
            if warm < request < requests - warm:
                decoded += emitted
                decoding_s += lasts
            running[request] -= emitted
            if running[request] <= 0:
                del running[request]
        for request in done:
            if outputs[request] > 1:
                running[request] = outputs[request] - 1
    return {
        "batch": area / float(arrivals[-1] - arrivals[warm]),
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
