"""Speed-up at one batch, and at the batches that one arrival rate settles at."""

import numpy as np

from capplan.physics import drafting
from capplan.planner.candidate import Candidate
from capplan.planner.operating_point import operating_point
from capplan.planner.trial import THOROUGH, Trial
from plotted import Tree, digits
from plotted.replicas import LOOSE_TPOT_S, candidate, curve_of, profile, reached, trial_of

LOADS = (0.5, 0.7, 0.85)
"""Parts of the highest rate that plain decoding serves at all."""
LENGTHS = (1, 3, 5)
SMOOTH = ("moe",)
"""Models whose rounds have a slope: the dense one's jump at the edges of its kernels' tiles."""
_STRIDE = 1.25
"""Batches over and under the plain one between which a round's elasticity is taken."""


def equilibrium(model: str, workload: str) -> list[Tree]:
    """Both speed-ups at each load and draft length, by simulation and by the balance."""
    solved = candidate(profile(model), workload, LOOSE_TPOT_S)
    most = reached(solved, curve_of(solved, "plain")).rate_per_s
    rows = []
    for load in LOADS:
        plain = _served(solved, "plain", load * most)
        for length in LENGTHS:
            drafted = _served(solved, f"always:{length}", load * most)
            rows.append(
                {
                    "model": model,
                    "workload": workload,
                    "load": load,
                    "draft_tokens": length,
                    "plain_batch": plain["batch"],
                    "batch": drafted["batch"],
                    **_at_fixed_batch(solved, length, plain["batch"], smooth=model in SMOOTH),
                    "at_equilibrium": digits(plain["tpot_s"] / drafted["tpot_s"]),
                    "in_batch": digits(plain["in_batch_s"] / drafted["in_batch_s"]),
                    "at_equilibrium_by_balance": digits(
                        plain["tpot_by_balance_s"] / drafted["tpot_by_balance_s"]
                    ),
                }
            )
    return rows


def _served(solved: Candidate, policy: str, rate_per_s: float) -> dict[str, float]:
    """Mean batch, and mean time per token by simulation and by the balance.

    What preemption takes of an answer's time is not spent in the batch.
    """
    curve = curve_of(solved, policy)
    trial = trial_of(solved, curve, THOROUGH)
    run = trial.run(rate_per_s)
    point = operating_point(curve, solved.demand, solved.estimates, 0, rate_per_s)
    return {
        "batch": digits(run.mean_batch),
        "tpot_s": _mean_over_tokens(trial, run.decode_s),
        "in_batch_s": _mean_over_tokens(trial, run.target_s + run.draft_s + run.interference_s),
        "tpot_by_balance_s": point.tpot_mean_s,
    }


def _mean_over_tokens(trial: Trial, decode_s: np.ndarray) -> float:
    here = trial.counted(0)
    return float(decode_s[here].sum() / (trial.drawn.output_tokens[here] - 1).sum())


def _at_fixed_batch(solved: Candidate, length: int, batch: float, *, smooth: bool) -> Tree:
    """Speed-up at a batch; where rounds have a slope also it and what both say to first order."""
    replica = solved.replica
    context = float(replica.context_tokens[0, 0])

    def round_s(at: float) -> float:
        step_s = float(replica.surfaces.step_s(at, context, length + 1))
        return step_s + float(replica.surfaces.draft_s(at, length))

    tokens = float(replica.tokens_per_round[0, replica.variants.index(length)])
    decode_s = float(replica.surfaces.step_s(batch, context, 1))
    fixed = float(drafting.speed_up(decode_s, round_s(batch), tokens))
    if not smooth:
        return {"at_fixed_batch": digits(fixed)}
    longer = round_s(batch * _STRIDE) / round_s(batch / _STRIDE)
    elasticity = float(np.log(longer) / np.log(_STRIDE**2))
    return {
        "at_fixed_batch": digits(fixed),
        "round_elasticity": digits(elasticity),
        "first_order": digits(fixed ** (1 / (1 - elasticity))),
    }
