"""What the dense profile's tables leave out: how prompts meet the edges of the kernels' tiles."""

from dataclasses import replace

from capplan.records.profile import Profile
from composed import deployments, profiles, silicon, tables
from plotted import Tree, digits
from plotted.replicas import candidate, curve_of, profile, reached

CASES = (
    ("chat", 0.020),
    ("chat", 0.030),
    ("chat", 0.100),
    ("reasoning", 0.020),
    ("reasoning", 0.030),
)
POLICIES = ("plain", "always:1", "always:2", "always:3", "always:5")


def grid() -> list[Tree]:
    """Capacity [1/s] of the dense model as shipped, and with prompts tabulated finely."""
    sources = {"shipped": profile("dense"), "finer": dense_with_finer_mixed_steps()}
    return [
        {
            "workload": workload,
            "tpot_p99_s": limit_s,
            **{name: _capacities(source, workload, limit_s) for name, source in sources.items()},
        }
        for workload, limit_s in CASES
    ]


def dense_with_finer_mixed_steps() -> Profile:
    """Composed of the same kernel times: beside every batch and length that steps are given for."""
    edges = silicon.edges(deployments.LLAMA_TILES)
    shipped = profiles.llama_plan()
    chunks = {*shipped.chunks, *range(64, 1025, 64), *(e + past for e in edges for past in (0, 1))}
    plan = replace(
        shipped,
        mixed_batches=shipped.batches,
        mixed_query_tokens=tables.QUERY_TOKENS,
        chunks=tuple(sorted(chunk for chunk in chunks if chunk >= min(shipped.chunks))),
    )
    return profile("dense").model_copy(update={"mixed": tables.mixed_table(plan)})


def _capacities(source: Profile, workload: str, limit_s: float) -> dict[str, float]:
    solved = candidate(source, workload, limit_s)
    return {
        policy: digits(reached(solved, curve_of(solved, policy)).rate_per_s) for policy in POLICIES
    }
