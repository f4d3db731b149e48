"""Capacity when requests differ in acceptance, their mean tokens per round kept."""

from capplan.records.profile import Profile
from plotted import Tree, digits
from plotted.replicas import DRAFTER, candidate, curve_of, profile, reached

DEVIATIONS = (0.02, 0.05, 0.10, 0.15, 0.20)
LENGTHS = (1, 2, 3, 5)
TPOT_P99_S = 0.020


def spread(model: str, workload: str) -> Tree:
    """Capacity [1/s] of each draft length by the standard deviation between requests."""
    rows = []
    for deviation in DEVIATIONS:
        solved = candidate(with_spread(profile(model), deviation), workload, TPOT_P99_S)
        policies = [f"always:{length}" for length in LENGTHS]
        rates = {
            policy: digits(reached(solved, curve_of(solved, policy)).rate_per_s)
            for policy in policies
        }
        rows.append({"per_request_sd": deviation, "capacity_per_s": rates})
    return {
        "model": model,
        "workload": workload,
        "tpot_p99_s": TPOT_P99_S,
        "deviations": rows,
    }


def with_spread(source: Profile, deviation: float) -> Profile:
    drafter = source.drafters[DRAFTER]
    tables = {
        name: table.model_copy(update={"per_request_sd": deviation})
        for name, table in drafter.acceptance.items()
    }
    other = drafter.model_copy(update={"acceptance": tables})
    return source.model_copy(update={"drafters": {DRAFTER: other}})
