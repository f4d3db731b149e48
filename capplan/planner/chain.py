"""The steps in order: forecast, profiles and fleet to a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from capplan.errors import Complaint, InfeasibleError, InputError
from capplan.planner import coverage, decision, grading, origins, room
from capplan.planner.candidate import Candidate
from capplan.planner.demand import busiest_intervals
from capplan.planner.demand import demand as demand_of
from capplan.planner.handover import Handover
from capplan.planner.policy_plan import Outcome, again, plan_policy
from capplan.planner.pool import Pool
from capplan.planner.search import Deployment, Pooling, Search
from capplan.planner.trial import Stage
from capplan.records.caveat import Caveat
from capplan.records.fleet import Fleet
from capplan.records.forecast import Forecast
from capplan.records.plan import Demand, Plan
from capplan.records.profile import Profile

_OWN_ENGINES = {"beside": (False,), "dedicated": (True,), "auto": (False, True)}
POLICIES = ("plain", "always", "by-load")

Prefilling = Literal["beside", "dedicated", "auto"]


@dataclass(frozen=True)
class Asked:
    """How to plan, beside the inputs.

    Attributes:
        policies: Such as plain, always:3, by-load; None plans plain, always and by-load, or plain
            alone where no profile has a drafter.
        pooling: Whether classes may be parted into pools.
        prefill: Whether prompts are processed beside decoding or on engines of their own; auto
            takes whichever needs fewer GPUs, pool by pool.
        stage: To simulate with; None to go by the balance alone.
        unsimulated: Why nothing is simulated, where there is no stage.
    """

    policies: tuple[str, ...] | None = None
    pooling: Pooling = "auto"
    prefill: Prefilling = "beside"
    stage: Stage | None = None
    unsimulated: str = "nothing to simulate with was given"


def outcomes(
    forecast: Forecast, profiles: list[Profile], fleet: Fleet, asked: Asked
) -> tuple[list[Outcome], list[Caveat]]:
    """Each policy at its best deployment and pools, and what could not be used.

    Raises:
        InputError: The inputs do not belong together, or ask for what was not measured.
        InfeasibleError: No policy keeps the objectives at any size of fleet.
    """
    _check_models(forecast, profiles)
    demand = demand_of(forecast)
    # The simplest first: what by-load may run is known then, and of equals the first is taken.
    policies = sorted(asked.policies or _default_policies(profiles), key=_complexity)
    usable, refused = _deployments(profiles, demand, fleet, policies, asked.prefill)
    by_gpu = [
        Search(demand, deployments, fleet.rules, asked.stage, asked.pooling)
        for deployments in _by_gpu(usable)
    ]
    found: list[Outcome] = []
    for policy in policies:
        found.append(_best(policy, by_gpu, forecast, fleet, found))
    if all(one.plan.infeasible is not None for one in found):
        raise InfeasibleError(_all_infeasible(forecast, found))
    return found, [*_undrafted(profiles, asked.policies), *refused]


def plan(
    forecast: Forecast, profiles: list[Profile], fleet: Fleet, asked: Asked, program: str
) -> Plan:
    """Plans a forecast on a fleet; errors as in `outcomes`.

    Args:
        forecast: The traffic.
        profiles: Candidates, at least one.
        fleet: The hardware and its rules.
        asked: Policies, pools, simulation.
        program: Version of capplan.
    """
    found, refused = outcomes(forecast, profiles, fleet, asked)
    plans = tuple(outcome.plan for outcome in found)
    pools = [pool for outcome in found for pool in outcome.pools]
    in_use = list({p.candidate.replica.profile.name: _profile(p) for p in pools}.values())
    return Plan(
        capplan=program,
        forecast=forecast.name,
        model=forecast.model,
        fleet=fleet.name,
        purchase_grade=grading.purchase_grade(in_use, asked.stage),
        grade=grading.grade(in_use, asked.stage, asked.unsimulated),
        seed=None if asked.stage is None else asked.stage.seed,
        demand=demand_of(forecast),
        policies=plans,
        verdict=decision.verdict(found),
        origins=origins.origins(forecast, {p.name: p for p in in_use}, fleet, plans),
        defaults=origins.defaults(forecast, fleet),
        caveats=_distinct(
            *grading.caveats(in_use, found, asked.stage),
            *refused,
            *origins.caveats(forecast, fleet, in_use),
            *(caveat for one in pools for caveat in _coverage(one.candidate)),
        ),
    )


def _profile(one: Pool) -> Profile:
    return one.candidate.replica.profile


def _deployments(
    profiles: list[Profile],
    demand: Demand,
    fleet: Fleet,
    policies: Sequence[str],
    prefill: Prefilling,
) -> tuple[list[Deployment], list[Caveat]]:
    """Every profile with every drafter that can be planned with, and why others cannot.

    Raises:
        InputError, InfeasibleError: None can.
    """
    speculative = any(policy != "plain" for policy in policies)
    usable, refusals = [], []
    for profile, own in product(profiles, _OWN_ENGINES[prefill]):
        for drafter in profile.drafters if speculative and profile.drafters else [None]:
            try:
                room.check_weights(profile, fleet)
                handover = Handover.of(profile, profile, fleet) if own else None
                candidate = Candidate.of(
                    profile, drafter, busiest_intervals(demand), handover=handover
                )
                room.check_longest_request(profile, demand, candidate.replica.room_tokens)
                usable.append((profile, drafter, handover))
            except (InputError, InfeasibleError) as error:
                refusals.append((profile, drafter, error))
    if not usable:
        raise _all_refused([error for _, _, error in refusals])
    caveats = [
        Caveat(
            about="not planned with",
            text=f"{profile.name}{f' and {drafter}' if drafter else ''}: {error}",
        )
        for profile, drafter, error in refusals
    ]
    return usable, caveats


def _by_gpu(usable: list[Deployment]) -> list[list[Deployment]]:
    """Deployments apart by the GPU they run on: the pools of one plan share hardware."""
    kinds = dict.fromkeys(profile.deployment.gpu for profile, *_ in usable)
    return [[one for one in usable if one[0].deployment.gpu == gpu] for gpu in kinds]


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


def _best(
    policy: str, by_gpu: list[Search], forecast: Forecast, fleet: Fleet, known: list[Outcome]
) -> Outcome:
    """The policy on the GPU of which it needs fewest, watts deciding between equals."""
    found = [
        again(policy, pools, known) or plan_policy(policy, pools, search, fleet, forecast.scenarios)
        for search in by_gpu
        if (pools := search.pools(policy))
    ]
    if not found:
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
    return min(found, key=_rank)


def _rank(outcome: Outcome) -> tuple[bool, int, float]:
    placement, power = outcome.plan.placement, outcome.plan.power
    if placement is None:
        return True, 0, 0.0
    return False, placement.gpus, 0.0 if power is None else power.mean_it_w


def _complexity(policy: str) -> int:
    return POLICIES.index(policy.partition(":")[0])


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


def _all_infeasible(forecast: Forecast, found: list[Outcome]) -> str:
    lines = [f"  {outcome.plan.policy}: {outcome.plan.infeasible}" for outcome in found]
    return "\n".join(
        [f"forecast {forecast.name}: no fleet of any size keeps the objectives", *lines]
    )


def _undrafted(profiles: list[Profile], policies: tuple[str, ...] | None) -> list[Caveat]:
    if policies is not None or any(profile.drafters for profile in profiles):
        return []
    names = ", ".join(profile.name for profile in profiles)
    return [Caveat(about="speculation", text=f"not planned: {names} has no drafter")]
