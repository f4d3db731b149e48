"""What a replica's capacity hangs on: how far it moves with each thing that it rests on."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from capplan.errors import InputError
from capplan.physics import acceptance
from capplan.physics.roots import crossing
from capplan.physics.surface import Array
from capplan.planner import speculation
from capplan.planner.candidate import Candidate, same_engine
from capplan.planner.capacity import MEASURED, Curve, capacity_of_mix, largest_measured
from capplan.planner.demand import interval_alone
from capplan.planner.surfaces import Surfaces
from capplan.planner.uncertainty import Table
from capplan.records.acceptance import Acceptance
from capplan.records.plan import Demand
from capplan.records.profile import Profile
from capplan.records.service import Elasticity

_MORE, _LESS = 1.05, 1 / 1.05
"""Wide enough to step over the wiggles of a measured table."""


def elasticities(
    candidate: Candidate, curve: Curve, factors: Array, mix: int
) -> tuple[Elasticity, ...]:
    """Slopes of the logarithm of capacity, each from a change of five per cent for the better.

    Engine settings stay. A mixed step is a step and what its chunk adds: the two are apart. Where
    the better side leaves what was measured, the worse one stands in; then nothing is said.

    Args:
        candidate: For the demand.
        curve: The replica under its policy.
        factors: By which each constraint's use is calibrated. [constraints]
        mix: A mix of classes that some interval with traffic has.

    Returns:
        In the order of the record; none where capacity is nought or the measurement's end.
    """
    load, profile = candidate.replica.load, curve.replica.profile
    interval = int(np.argmax(np.where(load.mix_of_interval == mix, load.rate_per_s, -1.0)))
    demand = interval_alone(candidate.demand, interval)
    case = _Case(same_engine(curve, profile, demand)[1], demand, factors)
    rate = case.capacity_per_s()
    if rate is None:
        return ()
    slopes = {of: _slope(case, rate, of) for of in _CHANGES}
    known = [(of, slope) for of, slope in slopes.items() if slope is not None]
    return tuple(Elasticity.model_validate({"of": of, "value": slope}) for of, slope in known)


@dataclass(frozen=True)
class _Case:
    """One mix under one policy, and how much there is of what was changed, over before.

    Attributes:
        factors: As in `elasticities`.
        ratio: What was changed, after over before.
        ease: Objectives over what they are.
    """

    curve: Curve
    demand: Demand
    factors: Array
    ratio: float = 1.0
    ease: float = 1.0

    def capacity_per_s(self) -> float | None:
        """None where nothing is served in time, or more than was measured might be."""
        curve = self.curve.calibrated(self.factors)
        objectives = _objectives(curve)[:, None, None]
        used = np.where(objectives, curve.used / self.ease, curve.used)
        # Nothing can be interpolated up to an endless wait: the rate would jump from batch to
        # batch of the grid. The resource that has run out stands beside it, and crosses smoothly.
        smooth = replace(curve, used=np.where(objectives & np.isinf(used), np.nan, used))
        rate, stopped_by = capacity_of_mix(smooth, 0)
        short = largest_measured(curve, 0) < curve.replica.profile.limits.max_batch
        return None if rate == 0 or (stopped_by == MEASURED and short) else rate

    def solved(
        self, ratio: float, *, profile: Profile | None = None, demand: Demand | None = None
    ) -> "_Case":
        """The same engine elsewhere; an InputError where it was not measured."""
        asked = demand or self.demand
        _, curve = same_engine(self.curve, profile or self.curve.replica.profile, asked)
        return replace(self, curve=curve, demand=asked, ratio=ratio)


def _slope(case: _Case, rate_per_s: float, of: str) -> float | None:
    change, better = _CHANGES[of]
    for factor in (better, 1 / better):
        with suppress(InputError):
            changed = change(case, factor)
            if changed and (rate := changed.capacity_per_s()):
                return math.log(rate / rate_per_s) / math.log(changed.ratio)
    return None


def _objectives(curve: Curve) -> Array:
    """Which constraints are objectives. [constraints]."""
    return np.array([limit.binding.kind == "objective" for limit in curve.constraints], dtype=bool)


def _eased(case: _Case, factor: float) -> _Case:
    return replace(case, ease=factor, ratio=factor)


def _longer(case: _Case, factor: float, keys: tuple[str, ...]) -> _Case:
    update = [
        {key: np.multiply(getattr(traffic, key), factor).tolist() for key in keys}
        for traffic in case.demand.classes
    ]
    return case.solved(factor, demand=_with_classes(case.demand, update))


def _with_classes(demand: Demand, update: list[dict[str, Any]]) -> Demand:
    classes = (c.model_copy(update=own) for c, own in zip(demand.classes, update, strict=True))
    return demand.model_copy(update={"classes": tuple(classes)})


def _kept(case: _Case, factor: float) -> _Case | None:
    """Acceptance moved alike at every position and for every class, as a tie is sought."""
    replica, longest = case.curve.replica, case.curve.draft_lengths[-1]
    if longest == 0 or replica.drafter is None:
        return None
    tables = speculation.tables(replica.profile, replica.drafter, case.demand)
    undrafted = [place in case.curve.undrafted for place in range(len(tables))]
    shares = [speculation.shares_of(table) for table in tables]
    decode = replica.load.shares[0] * replica.load.decode_tokens

    def tokens(shift: float) -> float:
        moved = [acceptance.shifted_shares(own, shift) for own in shares]
        each = np.array([acceptance.tokens_per_round(own)[longest] for own in moved])
        each[undrafted] = 1.0
        return float(acceptance.mixed_tokens_per_round(decode, decode / each))

    before = tokens(0.0)
    shift = crossing(lambda shift: tokens(shift) - factor * before, -1.0, 1.0)
    if shift is None:
        return None
    # What a class brings itself goes before the profile's.
    update = [{"acceptance": {replica.drafter: _moved(table, shift)}} for table in tables]
    return case.solved(tokens(shift) / before, demand=_with_classes(case.demand, update))


def _moved(table: Acceptance, shift: float) -> Acceptance:
    shares = acceptance.shifted_shares(speculation.shares_of(table), shift)
    update = {"accepted_share": tuple(shares.tolist()), "accepted": None, "rounds": None}
    return table.model_copy(update=update)


def _steps(case: _Case, factor: float) -> _Case:
    profile = case.curve.replica.profile
    drafters = {
        name: drafter.model_copy(update={"draft": _scaled(drafter.draft, "draft_s", factor)})
        for name, drafter in profile.drafters.items()
    }
    update = {
        "steps": _scaled(profile.steps, "step_s", factor),
        "mixed": _scaled(profile.mixed, "step_s", 1.0, (factor - 1) * _without_chunks(profile)),
        "drafters": drafters,
    }
    return case.solved(factor, profile=profile.model_copy(update=update))


def _chunks(case: _Case, factor: float) -> _Case:
    profile = case.curve.replica.profile
    update = {
        "mixed": _scaled(profile.mixed, "step_s", factor, (1 - factor) * _without_chunks(profile)),
        "prefill": _scaled(profile.prefill, "step_s", factor),
    }
    return case.solved(factor, profile=profile.model_copy(update=update))


def _without_chunks(profile: Profile) -> Array:
    """The same step without a chunk for each mixed one; NaN where it was not measured. [s]."""
    rows = profile.mixed.rows
    places = np.array([(r.batch, r.context_tokens, r.query_tokens) for r in rows], dtype=float)
    return Surfaces.of(profile, None).step.at(*places.T)


def _scaled(table: Table, time: str, factor: float, added_s: Array | float = 0.0) -> Table:
    values = np.array([getattr(row, time) for row in table.rows]) * factor + added_s
    rows = tuple(
        row.model_copy(update={time: value})
        for row, value in zip(table.rows, values.tolist(), strict=True)
    )
    return table.model_copy(update={"rows": rows})


_ANSWERS = "output_tokens", "mean_output_tokens"
_PROMPTS = "prompt_tokens", "mean_prompt_tokens", "max_prompt_tokens"
_CHANGES: dict[str, tuple[Callable[[_Case, float], _Case | None], float]] = {
    "objectives": (_eased, _MORE),
    "output_tokens": (partial(_longer, keys=_ANSWERS), _LESS),
    "prompt_tokens": (partial(_longer, keys=_PROMPTS), _LESS),
    "tokens_per_round": (_kept, _MORE),
    "step_s": (_steps, _LESS),
    "prefill_s": (_chunks, _LESS),
}
