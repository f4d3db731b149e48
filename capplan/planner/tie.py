"""The acceptance at which two fleets are equally large."""

from collections.abc import Callable

from capplan.physics import acceptance
from capplan.physics.roots import crossing
from capplan.planner.candidate import same_engine
from capplan.planner.capacity import capacity_of_mix
from capplan.planner.demand import interval_alone
from capplan.planner.operating_point import batch_at, variant_at
from capplan.planner.policy_plan import Outcome
from capplan.planner.pool import Pool
from capplan.planner.speculation import shares_of
from capplan.planner.uncertainty import with_acceptance
from capplan.records.acceptance import Acceptance
from capplan.records.profile import Profile


def tokens_per_round_at_tie(speculative: Outcome, plain: Outcome) -> float | None:
    """Tokens per round at which speculation needs as many GPUs as plain decoding.

    The chance that a draft is kept is moved alike at every position and for every class, with
    pools and the engine's settings as they are, until both fleets are equally large before
    rounding, each at its own peak.

    Args:
        speculative: A feasible plan that drafts.
        plain: A feasible plan that does not.

    Returns:
        Tokens per round of the largest pool that drafts, at its last rate; None where no
        acceptance makes them equal.
    """
    wanted = gpus_unrounded(plain)
    largest = max(_drafting(speculative), key=_gpus_of)

    def surplus(shift: float) -> float:
        return wanted / sum(_shifted(pool, shift)[0] for pool in speculative.pools) - 1

    shift = crossing(surplus, -1.0, 1.0)
    return None if shift is None else _shifted(largest, shift)[1]


def gpus_unrounded(outcome: Outcome) -> float:
    """GPUs at the peak before rounding, headroom included and spares not."""
    return sum(_gpus_of(pool) for pool in outcome.pools)


def _gpus_of(pool: Pool) -> float:
    assert pool.sized is not None
    deployment = pool.candidate.replica.profile.deployment
    own = max(pool.sized.unrounded_by_interval) * deployment.gpus_per_replica
    prefill = pool.prefill
    return own + (prefill.replicas_at_peak * prefill.gpus_per_replica if prefill else 0)


def _drafting(outcome: Outcome) -> list[Pool]:
    return [pool for pool in outcome.pools if pool.curve.loaded]


def _shifted(pool: Pool, shift: float) -> tuple[float, float]:
    """GPUs and tokens per round at the peak's mix with acceptance moved."""
    if not pool.curve.loaded:
        return _gpus_of(pool), 1.0
    assert pool.sized is not None

    def moved(table: Acceptance) -> Acceptance:
        shares = acceptance.shifted_shares(shares_of(table), shift)
        update = {"accepted_share": tuple(shares.tolist()), "accepted": None, "rounds": None}
        return table.model_copy(update=update)

    alone = interval_alone(pool.candidate.demand, pool.sized.peak_interval)
    profile = _with_acceptance(pool.candidate.replica.profile, moved)
    _, curve = same_engine(pool.curve, profile, with_acceptance(alone, moved))
    rate = (
        capacity_of_mix(curve, 0)[0]
        if pool.calibration is None
        else float(pool.calibration.capacity_per_s(curve)[0])
    )
    variant = variant_at(curve, float(batch_at(curve, 0, rate)))
    tokens = float(curve.replica.tokens_per_round[0, variant])
    now = float(pool.capacity_per_s[pool.mix])
    deployment = pool.candidate.replica.profile.deployment
    own = max(pool.sized.unrounded_by_interval) * deployment.gpus_per_replica
    if rate == 0:
        return float("inf"), tokens
    # Engines for prompts do not draft: they stay as they are.
    return _gpus_of(pool) + own * (now / rate - 1), tokens


def _with_acceptance(profile: Profile, change: Callable[[Acceptance], Acceptance]) -> Profile:
    drafters = {
        name: drafter.model_copy(
            update={"acceptance": {w: change(table) for w, table in drafter.acceptance.items()}}
        )
        for name, drafter in profile.drafters.items()
    }
    return profile.model_copy(update={"drafters": drafters})
