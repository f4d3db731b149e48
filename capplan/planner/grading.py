"""How far a plan may be trusted: what was simulated, on what, and where it scatters."""

from collections.abc import Sequence

from capplan.planner.hazards import hazards
from capplan.planner.last_rate import PRECISE, looseness
from capplan.planner.policy_plan import Outcome
from capplan.planner.pool import Pool
from capplan.planner.trial import Stage
from capplan.records.caveat import Caveat
from capplan.records.profile import Profile

_SEEN = ("measured", "imported")
_SPLIT = (
    "contexts are taken to travel at the network's line rate once a prompt is done, without the "
    "drafter's own cache, and prefixes to be cached as often on any engine"
)
_FEW = 1_000
"""Requests of which ten lie beyond the 99th percentile."""


def purchase_grade(profiles: Sequence[Profile], stage: Stage | None) -> bool:
    """Whether percentiles are simulated on step times that were measured."""
    return stage is not None and not _unmeasured(profiles)


def grade(profiles: Sequence[Profile], stage: Stage | None, unsimulated: str) -> str:
    """What keeps a plan from being purchase-grade, or what it rests on."""
    missing = []
    if stage is None:
        missing.append(f"percentiles are modelled, not simulated ({unsimulated})")
    if names := _unmeasured(profiles):
        missing.append(f"step times are not measured ({', '.join(names)})")
    return "; ".join(missing) or "percentiles simulated on measured step times"


def caveats(
    profiles: Sequence[Profile], outcomes: Sequence[Outcome], stage: Stage | None
) -> list[Caveat]:
    """What the model or the simulations cannot say, and what stands near a cliff."""
    pools = [pool for outcome in outcomes for pool in outcome.pools]
    found = [] if stage is not None else _modelled(profiles)
    for pool in pools:
        found += _of_pool(pool)
    return found


def _loose_rates(pool: Pool) -> list[Caveat]:
    """The last rate, where even the most requests leave it open."""
    if pool.trials is None:
        return []
    trial, found = pool.trials[pool.decided_by]
    open_to = looseness(trial, found)
    if open_to <= PRECISE:
        return []
    text = (
        f"of {'+'.join(pool.load.names)} is known to {open_to:.0%} at worst, by the spread within "
        f"a run of {len(trial.drawn.arrival_s):,} requests: {found.binding.text} scatters there, "
        "or hardly moves with the rate. Plan with other seeds to see"
    )
    return [Caveat(about="last rate", text=text)]


def _unmeasured(profiles: Sequence[Profile]) -> list[str]:
    kinds = {p.name: (p.steps.origin or p.origin).kind for p in profiles}
    return [f"{name}: {kind}" for name, kind in kinds.items() if kind not in _SEEN]


def _modelled(profiles: Sequence[Profile]) -> list[Caveat]:
    return [
        Caveat(
            about="latency percentiles",
            text=f"modelled from means, simple queues and the tail factor of {profile.name} "
            f"({profile.tail.origin.kind}); not simulated. For p99 of short answers beside long "
            "prompts, simulations gave as little as half the rate",
        )
        for profile in profiles
    ]


def _of_pool(pool: Pool) -> list[Caveat]:
    assert pool.sized is not None
    rate = pool.sized.peak_rate_per_s / pool.sized.replicas_at_peak
    found = hazards(pool.curve, pool.mix, rate) + _rare_classes(pool) + _loose_rates(pool)
    if pool.doubt > 0:
        text = (
            f"from one mix of {'+'.join(pool.load.names)} to another the corrected balance erred "
            f"by up to {pool.doubt:.0%}; mixes that this might make the peak were simulated, "
            f"{len(pool.trials or ())} in all"
        )
        found.append(Caveat(about="other hours", text=text))
    if pool.prefill is not None:
        found.append(Caveat(about="engines for prompts", text=_SPLIT))
    if pool.open_mix is not None:
        text = (
            f"after {len(pool.trials or ())} simulated mixes of {'+'.join(pool.load.names)}, an "
            "hour with another might still be the peak; it was read off the corrected balance"
        )
        found.append(Caveat(about="peak", text=text))
    if pool.curve.undrafted:
        names = ", ".join(pool.load.names[place] for place in sorted(pool.curve.undrafted))
        text = (
            f"{names} undrafted beside others of {'+'.join(pool.load.names)}: such steps are "
            "modelled, read at their mean tokens a sequence between the widths that were measured"
        )
        found.append(Caveat(about="drafts by request", text=text))
    return found


def _rare_classes(pool: Pool) -> list[Caveat]:
    """Classes of which too few requests were simulated for a 99th percentile."""
    if pool.trials is None:
        return []
    trial, _ = pool.trials[pool.decided_by]
    counted = {name: int(trial.counted(place).sum()) for place, name in enumerate(pool.load.names)}
    return [
        Caveat(
            about="rare class",
            text=f"percentiles of {name} beside {'+'.join(pool.load.names)} rest on "
            f"{count:,} simulated requests",
        )
        for name, count in counted.items()
        if 0 < count < _FEW
    ]
