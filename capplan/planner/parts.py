"""Where latencies come from, in a simulated run: means over the requests near a percentile."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from capplan.physics.engine import Indices, Outcome
from capplan.physics.surface import Array
from capplan.planner.trial import Trial
from capplan.records.parts import Shown, TpotParts, TtftParts

_NEAR: tuple[tuple[Shown, float, float], ...] = (("p50", 0.45, 0.55), ("p99", 0.985, 0.995))
"""Requests between these shares of their class stand for a percentile."""


def ttft_parts(trial: Trial, run: Outcome) -> tuple[TtftParts, ...]:
    """Time to first token of each class at its median and 99th percentile, taken apart."""
    return tuple(
        _ttft(run, near, trial.demand.classes[place].name, label)
        for place in range(len(trial.demand.classes))
        for label, near in _around(trial.counted(place), run.ttft_s)
    )


def tpot_parts(trial: Trial, run: Outcome) -> tuple[TpotParts, ...]:
    """Time per output token after the first, likewise; answers of one token have none."""
    after = trial.drawn.output_tokens - 1
    return tuple(
        _tpot(trial, run, near, place, label)
        for place in range(len(trial.demand.classes))
        for label, near in _around(
            trial.counted(place) & (after > 0), run.decode_s / np.maximum(after, 1)
        )
    )


def _around(inside: NDArray[np.bool_], values: Array) -> Iterator[tuple[Shown, Indices]]:
    """Requests near each percentile of their values."""
    here = np.flatnonzero(inside)
    order = here[np.argsort(values[here], kind="stable")]
    if len(order) == 0:
        return
    for label, low, high in _NEAR:
        first = int(low * len(order))
        yield label, order[first : max(int(high * len(order)), first + 1)]


def _ttft(run: Outcome, near: Indices, name: str, label: Shown) -> TtftParts:
    ttft = float(run.ttft_s[near].mean())
    queue = float(run.queue_s[near].mean())
    # Where a chunk is cheaper beside a batch than alone, none of it is interference.
    alone = min(float(run.prefill_alone_s[near].mean()), ttft - queue)
    return TtftParts(
        traffic_class=name,
        percentile=label,
        ttft_s=ttft,
        queue_s=queue,
        prefill_s=alone,
        interference_s=ttft - queue - alone,
        preempted=float((run.preemptions[near] > 0).mean()),
    )


def _tpot(trial: Trial, run: Outcome, near: Indices, place: int, label: Shown) -> TpotParts:
    """Each answer's time over its tokens, and over the rounds that its class would have needed."""
    after = trial.drawn.output_tokens[near] - 1
    expected = after / _tokens_per_round(trial, run, place)
    # Rounds more than expected made every part longer in proportion: what that came to is luck.
    usual = np.minimum(expected / np.maximum(run.rounds[near], 1.0), 1e6)
    stepping = run.target_s[near] + run.draft_s[near] + run.interference_s[near]
    parts = {
        "target_s": run.target_s[near] * usual,
        "draft_s": run.draft_s[near] * usual,
        "interference_s": run.interference_s[near] * usual,
        "preemption_s": np.maximum(run.decode_s[near] - stepping, 0.0),
        "luck_s": stepping * (1 - usual),
    }
    return TpotParts(
        traffic_class=trial.demand.classes[place].name,
        percentile=label,
        tpot_s=float((run.decode_s[near] / after).mean()),
        **{name: float((seconds / after).mean()) for name, seconds in parts.items()},
    )


def _tokens_per_round(trial: Trial, run: Outcome, place: int) -> float:
    """What rounds of the class brought on average in this run."""
    inside = trial.counted(place)
    return float((trial.drawn.output_tokens[inside] - 1).sum() / max(run.rounds[inside].sum(), 1.0))
