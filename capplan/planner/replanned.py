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
    asked = of_classes(demand, _places(plan, demand))
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
    undrafted = frozenset(plan.classes.index(name) for name in service.undrafted_classes)
    candidate = Candidate.of(profile, service.drafter, asked, lengths, handover, undrafted)
    loaded = service.drafter is not None
    curve = Curve.of(candidate.replica, candidate.constraints, service.draft_ranges, loaded=loaded)
    return Pool(
        candidate,
        curve,
        curve.rate_per_s[:, 0] * 0,
        service.binding,
        plan.sizing,
        prefill=plan.prefill,
    )


def _places(plan: PoolPlan, demand: Demand) -> tuple[int, ...]:
    """Which classes of the demand a pool serves.

    Raises:
        InputError: A class, or the pool's peak, is not in the demand: the plan was edited.
    """
    names = [traffic.name for traffic in demand.classes]
    unknown = [name for name in plan.classes if name not in names]
    unknown += [name for name in plan.service.undrafted_classes if name not in plan.classes]
    intervals = min((len(traffic.rate_per_s) for traffic in demand.classes), default=0)
    complaints = [
        Complaint(f"plan {demand.forecast}", "pools.classes", "must be in the demand", name)
        for name in unknown
    ]
    if plan.sizing.peak_interval >= intervals:
        rule, found = f"must be one of {intervals} intervals", f"{plan.sizing.peak_interval}"
        complaints.append(Complaint(f"plan {demand.forecast}", "sizing.peak_interval", rule, found))
    if complaints:
        raise InputError(complaints)
    return tuple(names.index(name) for name in plan.classes)
