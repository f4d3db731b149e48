"""From the policies side by side to an answer, its reason, and what would change it."""

from collections.abc import Sequence

from capplan.planner.policy_plan import Outcome
from capplan.planner.tie import gpus_unrounded, tokens_per_round_at_tie
from capplan.records.plan import PolicyPlan, PoolPlan, Verdict
from capplan.records.service import OperatingPoint


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """The policy with fewest GPUs; among equals the one that asks least of the engine.

    Args:
        outcomes: At least one of them feasible; in the order plain, always, by-load.
    """
    feasible = [outcome for outcome in outcomes if outcome.plan.placement is not None]
    best = min(feasible, key=_gpus)
    plain = next((one for one in feasible if one.plan.policy == "plain"), None)
    rivals = [one for one in feasible if one.plan.policy != "plain"]
    if plain is None:
        return _without_plain(best.plan, [one.plan for one in outcomes])
    if not rivals:
        return _plain_alone(plain.plan, [one.plan for one in outcomes])
    if best.plan.policy == "plain":
        return _stay_plain(plain, min(rivals, key=_gpus))
    return _speculate(best, plain)


def _gpus(outcome: Outcome) -> int:
    return _bought(outcome.plan)


def _bought(plan: PolicyPlan) -> int:
    assert plan.placement is not None
    return plan.placement.gpus


def _main(plan: PolicyPlan) -> PoolPlan:
    """The pool with most GPUs, of those that draft at the peak if any does."""
    drafting = [pool for pool in plan.pools if pool.at_peak.draft_tokens > 0]
    return max(drafting or plan.pools, key=_gpus_of)


def _gpus_of(pool: PoolPlan) -> int:
    own = pool.sizing.replicas * pool.service.gpus_per_replica
    prefill = pool.prefill
    return own + (prefill.replicas * prefill.gpus_per_replica if prefill else 0)


def _peak(plan: PolicyPlan) -> OperatingPoint:
    return _main(plan).at_peak


def _speculate(best: Outcome, plain: Outcome) -> Verdict:
    saved = _gpus(plain) - _gpus(best)
    tie = tokens_per_round_at_tie(best, plain)
    now = _peak(best.plan).tokens_per_round
    return Verdict(
        policy=best.plan.policy,
        sentence=f"Speculate {_way(best.plan)}: {_gpus(best)} GPUs instead of {_gpus(plain)}, "
        f"{saved} fewer ({saved / _gpus(plain):.0%}).",
        reason=_reason(best.plan, plain.plan),
        flips=None
        if tie is None
        else f"the fleets are equal where a round brings {tie:.2f} tokens instead of {now:.2f}, "
        "drafts being kept less often at every position alike",
    )


def _stay_plain(plain: Outcome, rival: Outcome) -> Verdict:
    more = _gpus(rival) - _gpus(plain)
    outcome = "as many" if more == 0 else f"{more} more"
    return Verdict(
        policy="plain",
        sentence=f"Do not speculate for capacity: {_gpus(plain)} GPUs plain, {outcome} "
        f"{_way(rival.plan)}.",
        reason=_reason(rival.plan, plain.plan) + _still_faster(plain.plan, rival.plan),
        flips=_flips_plain(plain, rival),
    )


def _still_faster(plain: PolicyPlan, rival: PolicyPlan) -> str:
    """Latency that speculation would buy where it buys no GPUs."""
    slow, fast = (
        max(
            (
                estimate.value_s
                for pool in plan.pools
                for estimate in pool.at_peak.latencies
                if estimate.quantity == "tpot_p99_s"
            ),
            default=0.0,
        )
        for plan in (plain, rival)
    )
    if fast >= 0.95 * slow:
        return ""
    return f"; it would lower the worst p99 TPOT at the peak by {1 - fast / slow:.0%}"


def _flips_plain(plain: Outcome, rival: Outcome) -> str:
    now = _peak(rival.plan).tokens_per_round
    more = gpus_unrounded(plain) / gpus_unrounded(rival)
    if more > 1:
        return (
            f"whole replicas, spares and minima hide that a GPU serves {more - 1:.0%} more "
            f"requests {_way(rival.plan)}: more traffic would show it"
        )
    tie = tokens_per_round_at_tie(rival, plain) if _drafts(rival.plan) else None
    if tie is None:
        return "no acceptance alone would save a replica with these draft lengths"
    return (
        f"a GPU serves more with speculation where a round brings over {tie:.2f} tokens "
        f"instead of {now:.2f}"
    )


def _without_plain(best: PolicyPlan, plans: Sequence[PolicyPlan]) -> Verdict:
    why = next((plan.infeasible for plan in plans if plan.policy == "plain"), None)
    end = "." if why is None else "; plain decoding keeps the objectives with no fleet."
    return Verdict(
        policy=best.policy,
        sentence=f"Speculate {_way(best)}: {_bought(best)} GPUs{end}",
        reason=why or "plain decoding was not asked for",
    )


def _plain_alone(plain: PolicyPlan, plans: Sequence[PolicyPlan]) -> Verdict:
    refused = [plan for plan in plans if plan.infeasible is not None]
    why = "; ".join(f"{plan.policy}: {plan.infeasible}" for plan in refused)
    return Verdict(
        policy="plain",
        sentence=f"{_bought(plain)} GPUs plain.",
        reason=why or "no speculation was planned",
    )


def _drafts(plan: PolicyPlan) -> bool:
    return _peak(plan).draft_tokens > 0


def _way(plan: PolicyPlan) -> str:
    if plan.policy == "by-load":
        return "by load"
    lengths = dict.fromkeys(str(pool.at_peak.draft_tokens) for pool in plan.pools)
    return f"always ({' and '.join(lengths)} drafts)"


def _reason(speculative: PolicyPlan, plain: PolicyPlan) -> str:
    """What a round brings and costs at the peak, and what binds each fleet."""
    pool, point = _main(speculative), _peak(speculative)
    bound = (
        f"plain is bound by {_bindings(plain)}, {speculative.policy} by {_bindings(speculative)}"
    )
    if not _drafts(speculative):
        return f"at the peak's batch no draft length pays, so nothing is drafted there; {bound}"
    where = "" if len(speculative.pools) == 1 else f"in the pool of {'+'.join(pool.classes)}, "
    return (
        f"{where}at the peak's batch of {point.batch:.0f}, a round of {point.draft_tokens} drafts "
        f"brings {point.tokens_per_round:.2f} tokens and costs "
        f"{point.break_even_tokens_per_round:.2f} decode steps "
        f"(target efficiency {point.target_efficiency:.2f}{_edge(point)}); {bound}"
    )


def _bindings(plan: PolicyPlan) -> str:
    return " and ".join(dict.fromkeys(pool.service.binding.text for pool in plan.pools))


def _edge(point: OperatingPoint) -> str:
    edge = point.break_even_target_efficiency
    return "" if edge is None else f", break-even {edge:.2f}"
