"""Pools as a kept plan says they are, for simulating them again."""

from capplan.errors import Complaint, InputError
from capplan.planner.candidate import Candidate
from capplan.planner.capacity import Curve
from capplan.planner.demand import of_classes
from capplan.planner.handover import Handover
from capplan.planner.pool import Pool
from capplan.records.fleet import Fleet
from capplan.records.plan import Demand, PolicyPlan, PoolPlan
from capplan.records.profile import Profile


def pools_of(
    plan: PolicyPlan, demand: Demand, profiles: dict[str, Profile], fleet: Fleet
) -> list[Pool]:
    """Replicas with the settings of a plan.

    Args:
        plan: One policy.
        demand: Of the whole plan.
        profiles: By name, each that the plan uses.
        fleet: For what lies between engines for prompts and those that decode.

    Raises:
        InputError: A profile no longer covers what the plan made of it.
    """
    return [_pool(one, demand, profiles, fleet) for one in plan.pools]


def _pool(plan: PoolPlan, demand: Demand, profiles: dict[str, Profile], fleet: Fleet) -> Pool:
    service = plan.service
    profile = profiles[service.profile]
    names = [traffic.name for traffic in demand.classes]
    asked = of_classes(demand, tuple(names.index(name) for name in plan.classes))
    if service.drafter is not None and service.drafter not in profile.drafters:
        rule = f"must hold the plan's drafter, {service.drafter}"
        found = ", ".join(profile.drafters) or "none"
        raise InputError([Complaint(f"profile {profile.name}", "drafters", rule, found)])
    lengths = frozenset(draft.draft_tokens for draft in service.draft_ranges)
    handover = (
        None
        if plan.prefill is None
        else Handover.of(profiles[plan.prefill.profile], profile, fleet)
    )
    candidate = Candidate.of(profile, service.drafter, asked, lengths, handover)
    missing = sorted(lengths - set(candidate.replica.variants.draft_tokens))
    if missing:
        rule = "must cover the plan's draft lengths"
        raise InputError([Complaint(f"profile {profile.name}", "drafters", rule, f"no {missing}")])
    loaded = service.drafter is not None
    curve = Curve.of(candidate.replica, candidate.constraints, service.draft_ranges, loaded=loaded)
    return Pool(candidate, curve, curve.rate_per_s[:, 0] * 0, service.binding, plan.sizing)
