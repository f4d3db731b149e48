"""The acceptance at which two fleets are equally large."""

from collections.abc import Callable

from capplan.physics import acceptance
from capplan.physics.roots import crossing
from capplan.planner.candidate import Outcome, same_engine
from capplan.planner.capacity import capacity_of_mix
from capplan.planner.demand import interval_alone
from capplan.planner.operating_point import operating_point
from capplan.planner.speculation import shares_of
from capplan.planner.uncertainty import with_acceptance
from capplan.records.profile import Acceptance, Profile


def tokens_per_round_at_tie(speculative: Outcome, plain: Outcome) -> float | None:
    """Tokens per round at which speculation needs as many GPUs as plain decoding.

    The chance that a draft is kept is moved alike at every position and for every class, with the
    engine's settings as they are, until a GPU serves as many requests either way, each fleet at
    its own peak.

    Args:
        speculative: A feasible plan that drafts.
        plain: A feasible plan that does not.

    Returns:
        Tokens per round of the mix at its peak; None where no acceptance makes them equal.
    """
    wanted = _per_gpu(plain)

    def surplus(shift: float) -> float:
        return _shifted(speculative, shift)[0] / _gpus(speculative) - wanted

    shift = crossing(surplus, -1.0, 1.0)
    return None if shift is None else _shifted(speculative, shift)[1]


def _per_gpu(outcome: Outcome) -> float:
    assert outcome.plan.service is not None
    return outcome.plan.service.capacity_per_s / _gpus(outcome)


def _gpus(outcome: Outcome) -> int:
    return outcome.candidate.replica.profile.deployment.gpus_per_replica


def _shifted(outcome: Outcome, shift: float) -> tuple[float, float]:
    """Capacity and tokens per round at the peak's mix with acceptance moved. [1/s], [tokens]."""
    assert outcome.plan.sizing is not None

    def moved(table: Acceptance) -> Acceptance:
        shares = acceptance.shifted_shares(shares_of(table), shift)
        update = {"accepted_share": tuple(shares.tolist()), "accepted": None, "rounds": None}
        return table.model_copy(update=update)

    replica = outcome.candidate.replica
    alone = interval_alone(outcome.candidate.demand, outcome.plan.sizing.peak_interval)
    profile = _with_acceptance(replica.profile, moved)
    there, curve = same_engine(outcome.curve, profile, with_acceptance(alone, moved))
    rate, _ = capacity_of_mix(curve, 0)
    point = operating_point(curve, there.demand, there.estimates, 0, rate)
    return rate, point.tokens_per_round


def _with_acceptance(profile: Profile, change: Callable[[Acceptance], Acceptance]) -> Profile:
    drafters = {
        name: drafter.model_copy(
            update={"acceptance": {w: change(table) for w, table in drafter.acceptance.items()}}
        )
        for name, drafter in profile.drafters.items()
    }
    return profile.model_copy(update={"drafters": drafters})
