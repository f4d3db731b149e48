"""Replicas with and without speculation, by objective."""

from plotted import Tree, digits
from plotted.replicas import candidate, chosen, curve_of, profile, reached

TPOT_P99_S = (0.010, 0.012, 0.014, 0.017, 0.020, 0.025, 0.030, 0.040, 0.060, 0.100, 0.200)
LENGTHS = (1, 2, 3, 5, 7)
POLICIES = ("plain", *(f"always:{length}" for length in LENGTHS), "by-load")
BELOW_PLAIN = ("plain", "always:3")
"""What is searched where plain keeps nothing: short answers at rates near nought take long."""


def fleet(model: str, workload: str) -> Tree:
    """Capacity [1/s] of each policy at each objective; nought where no fleet keeps it."""
    source = profile(model)
    rows: list[Tree] = []
    settled: dict[str, float] = {}
    for limit_s in TPOT_P99_S:
        solved = candidate(source, workload, limit_s)
        rates: dict[str, float] = {}
        for policy in POLICIES:
            if policy in settled:
                rates[policy] = settled[policy]
            elif policy in BELOW_PLAIN or rates["plain"] > 0:
                curve = chosen(solved) if policy == "by-load" else curve_of(solved, policy)
                last = reached(solved, curve)
                rates[policy] = digits(last.rate_per_s)
                # What TPOT does not stop here it stops at no looser objective either; by load,
                # another table may be the best there.
                free = last.rate_per_s > 0 and not last.stopped_by.startswith("tpot")
                if free and policy != "by-load":
                    settled[policy] = rates[policy]
        rows.append({"tpot_p99_s": limit_s, "capacity_per_s": rates})
    return {"model": model, "workload": workload, "objectives": rows}


def best_length(capacity_per_s: dict[str, float]) -> str:
    """The constant draft length that serves most, as a policy."""
    always = [policy for policy in capacity_per_s if policy.startswith("always")]
    return max(always, key=lambda policy: capacity_per_s[policy])


def ratio(capacity_per_s: dict[str, float], policy: str) -> float | None:
    """Replicas with a policy over replicas without speculation; None where plain keeps nothing.

    Args:
        capacity_per_s: Of one replica, by policy.
        policy: One of them, or `best` for the length that serves most.
    """
    if capacity_per_s["plain"] == 0:
        return None
    name = best_length(capacity_per_s) if policy == "best" else policy
    return capacity_per_s["plain"] / capacity_per_s[name]
