"""From the policies side by side to an answer, its reason, and what would change it."""

from capplan.records.plan import OperatingPoint, PolicyPlan, Verdict


def verdict(policies: tuple[PolicyPlan, ...]) -> Verdict:
    """The policy with fewest GPUs; among equals the one that asks least of the engine.

    Args:
        policies: At least one of them feasible; in the order plain, always, by-load.
    """
    feasible = [plan for plan in policies if plan.placement is not None]
    best = min(feasible, key=_gpus)
    plain = next((plan for plan in feasible if plan.policy == "plain"), None)
    rivals = [plan for plan in feasible if plan.policy != "plain"]
    if plain is None:
        return _without_plain(best, policies)
    if not rivals:
        return _plain_alone(plain, policies)
    if best.policy == "plain":
        return _stay_plain(plain, min(rivals, key=_gpus))
    return _speculate(best, plain)


def _gpus(plan: PolicyPlan) -> int:
    assert plan.placement is not None
    return plan.placement.gpus


def _peak(plan: PolicyPlan) -> OperatingPoint:
    assert plan.at_peak is not None
    return plan.at_peak


def _speculate(best: PolicyPlan, plain: PolicyPlan) -> Verdict:
    saved = _gpus(plain) - _gpus(best)
    return Verdict(
        policy=best.policy,
        sentence=f"Speculate {_way(best)}: {_gpus(best)} GPUs instead of {_gpus(plain)}, "
        f"{saved} fewer ({saved / _gpus(plain):.0%}).",
        reason=_reason(best, plain),
        flips=_flips(best),
    )


def _stay_plain(plain: PolicyPlan, rival: PolicyPlan) -> Verdict:
    more = _gpus(rival) - _gpus(plain)
    outcome = "the same" if more == 0 else f"{more} more"
    return Verdict(
        policy="plain",
        sentence=f"Do not speculate for capacity: {_gpus(plain)} GPUs plain, {outcome} "
        f"{_way(rival)}.",
        reason=_reason(rival, plain),
        flips=_flips(rival),
    )


def _without_plain(best: PolicyPlan, policies: tuple[PolicyPlan, ...]) -> Verdict:
    why = next((plan.infeasible for plan in policies if plan.policy == "plain"), None)
    return Verdict(
        policy=best.policy,
        sentence=f"Speculate {_way(best)}: {_gpus(best)} GPUs"
        + ("." if why is None else "; plain decoding keeps the objectives with no fleet."),
        reason=why or "plain decoding was not asked for",
        flips=_flips(best),
    )


def _plain_alone(plain: PolicyPlan, policies: tuple[PolicyPlan, ...]) -> Verdict:
    refused = [plan for plan in policies if plan.infeasible is not None]
    why = "; ".join(f"{plan.policy}: {plan.infeasible}" for plan in refused)
    return Verdict(
        policy="plain",
        sentence=f"{_gpus(plain)} GPUs plain.",
        reason=why or "no speculation was planned",
    )


def _way(plan: PolicyPlan) -> str:
    return "by load" if plan.policy == "by-load" else f"always ({_peak(plan).draft_tokens} drafts)"


def _reason(speculative: PolicyPlan, plain: PolicyPlan) -> str:
    """What a round brings and costs at the peak, and what binds each fleet."""
    point = _peak(speculative)
    assert speculative.service is not None
    assert plain.service is not None
    bound = (
        f"plain is bound by {plain.service.binding.text}, "
        f"{speculative.policy} by {speculative.service.binding.text}"
    )
    if point.draft_tokens == 0:
        return f"at the peak's batch no draft length pays, so nothing is drafted there; {bound}"
    cost = point.break_even_tokens_per_round
    return (
        f"at the peak a round of {point.draft_tokens} drafts brings "
        f"{point.tokens_per_round:.2f} tokens and costs {cost:.2f} decode steps "
        f"(target efficiency {point.target_efficiency:.2f}); {bound}"
    )


def _flips(speculative: PolicyPlan) -> str | None:
    point = _peak(speculative)
    if point.draft_tokens == 0:
        return None
    return (
        f"speculation loses at the peak's batch of {point.batch:.0f} where a round brings fewer "
        f"than {point.break_even_tokens_per_round:.2f} tokens"
    )
