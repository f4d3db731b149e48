"""What the batches that a profile was tabulated at have to do with the answer."""

from capplan.records.profile import Profile
from composed import deployments, profiles, tables
from plotted import Tree, digits
from plotted.replicas import candidate, profile, reached

CAPTURED = (1, 2, 4, *range(8, 257, 8), *range(272, 513, 16))
"""Batches at which vLLM captures CUDA graphs unless told otherwise."""
CASES = (("chat", 0.030), ("reasoning", 0.020), ("reasoning", 0.030))
POLICIES = ("plain", "always:1", "always:2", "always:3", "always:5")


def grid() -> list[Tree]:
    """Capacity [1/s] of the dense model as shipped, and with steps at every captured batch."""
    sources = {"shipped": profile("dense"), "finer": dense_at_every_captured_batch()}
    return [
        {
            "workload": workload,
            "tpot_p99_s": limit_s,
            **{name: _capacities(source, workload, limit_s) for name, source in sources.items()},
        }
        for workload, limit_s in CASES
    ]


def _capacities(source: Profile, workload: str, limit_s: float) -> dict[str, float]:
    solved = candidate(source, workload, limit_s)
    return {policy: digits(reached(solved, policy).rate_per_s) for policy in POLICIES}


def dense_at_every_captured_batch() -> Profile:
    """Composed of the same kernel times as the shipped profile."""
    whole = deployments.llama()
    plan = tables.Plan(
        composition=whole,
        upper=whole,
        batches=CAPTURED,
        mixed_batches=(),
        power_by_tokens=profiles.DENSE_POWER,
        drafter=deployments.llama_drafter(),
    )
    return profile("dense").model_copy(update={"steps": tables.step_table(plan)})
