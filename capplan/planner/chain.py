"""The steps in order: forecast, profiles and fleet to a plan."""

from capplan.errors import Complaint, InfeasibleError, InputError
from capplan.physics import memory
from capplan.planner import coverage, decision, origins
from capplan.planner.candidate import Candidate, Outcome, plan_policy
from capplan.planner.demand import demand as demand_of
from capplan.planner.placement import node_for
from capplan.records.caveat import Caveat
from capplan.records.fleet import Fleet
from capplan.records.forecast import Forecast
from capplan.records.plan import Demand, Plan, PolicyPlan
from capplan.records.profile import Profile

POLICIES = ("plain", "always", "by-load")


def outcomes(
    forecast: Forecast, profiles: list[Profile], fleet: Fleet, policies: tuple[str, ...] | None
) -> tuple[list[Outcome], list[Caveat]]:
    """Each policy at the best of the profiles and drafters given, and what could not be used.

    Args:
        forecast: The traffic.
        profiles: Candidates, at least one.
        fleet: The hardware and its rules.
        policies: Such as plain, always:3, by-load; None plans plain, always and by-load, or plain
            alone where no profile has a drafter.

    Raises:
        InputError: The inputs do not belong together, or ask for what was not measured.
        InfeasibleError: No policy keeps the objectives at any size of fleet.
    """
    _check_models(forecast, profiles)
    demand = demand_of(forecast)
    asked = policies or _default_policies(profiles)
    candidates, refused = _candidates(profiles, demand, fleet, asked)
    found = [_best(policy, candidates, forecast, fleet) for policy in asked]
    if all(one.plan.infeasible is not None for one in found):
        raise InfeasibleError(_all_infeasible(forecast, [one.plan for one in found]))
    return found, [*_undrafted(profiles, policies), *refused]


def plan(
    forecast: Forecast,
    profiles: list[Profile],
    fleet: Fleet,
    policies: tuple[str, ...] | None,
    program: str,
) -> Plan:
    """Plans a forecast on a fleet; arguments and errors as in `outcomes`.

    Args:
        forecast: The traffic.
        profiles: Candidates.
        fleet: The hardware.
        policies: To compare.
        program: Version of capplan.
    """
    found, refused = outcomes(forecast, profiles, fleet, policies)
    plans = tuple(outcome.plan for outcome in found)
    used = list({id(o.candidate): o.candidate for o in found if o.plan.service}.values())
    in_use = list({c.replica.profile.name: c.replica.profile for c in used}.values())
    return Plan(
        capplan=program,
        forecast=forecast.name,
        model=forecast.model,
        fleet=fleet.name,
        purchase_grade=False,
        demand=used[0].demand,
        policies=plans,
        verdict=decision.verdict(found),
        origins=origins.origins(forecast, {p.name: p for p in in_use}, fleet, plans),
        defaults=origins.defaults(forecast, fleet),
        caveats=_distinct(
            *_tail_caveats(in_use),
            *refused,
            *origins.caveats(forecast, fleet, in_use),
            *(caveat for candidate in used for caveat in _coverage(candidate)),
        ),
    )


def _candidates(
    profiles: list[Profile], demand: Demand, fleet: Fleet, policies: tuple[str, ...]
) -> tuple[list[Candidate], list[Caveat]]:
    """Every profile with every drafter that can be planned with, and why others cannot.

    Raises:
        InputError, InfeasibleError: None can.
    """
    speculative = any(policy != "plain" for policy in policies)
    candidates, refusals = [], []
    for profile in profiles:
        for drafter in profile.drafters if speculative and profile.drafters else [None]:
            try:
                _check_fits(profile, fleet)
                candidates.append(Candidate.of(profile, drafter, demand))
            except (InputError, InfeasibleError) as error:
                refusals.append((profile, drafter, error))
    if not candidates:
        raise _all_refused([error for _, _, error in refusals])
    caveats = [
        Caveat(
            about="not planned with",
            text=f"{profile.name}{f' and {drafter}' if drafter else ''}: {error}",
        )
        for profile, drafter, error in refusals
    ]
    return candidates, caveats


def _all_refused(errors: list[InputError | InfeasibleError]) -> InputError | InfeasibleError:
    mendable = [error for error in errors if isinstance(error, InputError)]
    if mendable:
        complaints = [complaint for error in mendable for complaint in error.complaints]
        return InputError(list(dict.fromkeys(complaints)))
    return InfeasibleError("\n".join(dict.fromkeys(str(error) for error in errors)))


def _coverage(candidate: Candidate) -> list[Caveat]:
    replica = candidate.replica
    return coverage.caveats(replica.profile, replica.load, replica.surfaces)


def _distinct(*caveats: Caveat) -> tuple[Caveat, ...]:
    return tuple({(c.about, c.text): c for c in caveats}.values())


def _best(policy: str, candidates: list[Candidate], forecast: Forecast, fleet: Fleet) -> Outcome:
    """The policy on the candidate that needs fewest GPUs, watts deciding between equals."""
    fitting = [c for c in candidates if policy == "plain" or c.replica.drafter is not None]
    if not fitting:
        raise InputError(
            [
                Complaint(
                    place="--policy",
                    key=policy,
                    rule="needs a profile with a drafter",
                    remedy="add drafters to the profile, or plan --policy plain",
                )
            ]
        )
    return min((plan_policy(policy, c, fleet, forecast.scenarios) for c in fitting), key=_rank)


def _rank(outcome: Outcome) -> tuple[bool, int, float]:
    placement, power = outcome.plan.placement, outcome.plan.power
    if placement is None:
        return True, 0, 0.0
    return False, placement.gpus, 0.0 if power is None else power.mean_it_w


def _default_policies(profiles: list[Profile]) -> tuple[str, ...]:
    return POLICIES if any(profile.drafters for profile in profiles) else ("plain",)


def _check_models(forecast: Forecast, profiles: list[Profile]) -> None:
    wrong = [
        Complaint(
            place=f"profile {profile.name}",
            key="model.name",
            rule=f"must be the forecast's model, {forecast.model}",
            found=profile.model.name,
        )
        for profile in profiles
        if profile.model.name != forecast.model
    ]
    if wrong:
        raise InputError(wrong)


def _check_fits(profile: Profile, fleet: Fleet) -> None:
    """A replica's weights must fit its GPUs: no number of replicas helps."""
    deployment = profile.deployment
    held = fleet.gpus[node_for(fleet, deployment.gpu).gpu].memory_bytes
    weights = profile.memory.weights_bytes
    if not memory.weights_fit(weights, deployment.gpus_per_replica, held):
        raise InfeasibleError(
            f"profile {profile.name}: weights of {weights:.4g} bytes do not fit "
            f"{deployment.gpus_per_replica} x {deployment.gpu} of {held:.4g} bytes; "
            f"nearest feasible: {memory.gpus_for_weights(weights, held)} GPUs a replica"
        )


def _all_infeasible(forecast: Forecast, plans: list[PolicyPlan]) -> str:
    lines = [f"  {outcome.policy}: {outcome.infeasible}" for outcome in plans]
    return "\n".join(
        [f"forecast {forecast.name}: no fleet of any size keeps the objectives", *lines]
    )


def _tail_caveats(profiles: list[Profile]) -> list[Caveat]:
    return [
        Caveat(
            about="latency percentiles",
            text=f"modelled from means, simple queues and the tail factor of {profile.name} "
            f"({profile.tail.origin.kind}); not simulated, so not purchase-grade. For p99 of "
            "short answers beside long prompts, simulations gave as little as half the rate",
        )
        for profile in profiles
    ]


def _undrafted(profiles: list[Profile], policies: tuple[str, ...] | None) -> list[Caveat]:
    if policies is not None or any(profile.drafters for profile in profiles):
        return []
    names = ", ".join(profile.name for profile in profiles)
    return [Caveat(about="speculation", text=f"not planned: {names} has no drafter")]
