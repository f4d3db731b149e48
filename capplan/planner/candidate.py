"""One profile and one drafter, solved at every batch for a demand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from capplan.errors import InputError
from capplan.planner import capacity as capacities
from capplan.planner import coverage, latencies
from capplan.planner.capacity import Constraint, Curve
from capplan.planner.handover import Handover
from capplan.planner.latencies import Estimates
from capplan.planner.load import Load
from capplan.planner.service import Replica
from capplan.planner.speculation import Variants
from capplan.planner.surfaces import Surfaces
from capplan.records.plan import Demand
from capplan.records.profile import Profile


@dataclass(frozen=True)
class Candidate:
    """A replica solved once, for every policy to choose from."""

    replica: Replica
    constraints: tuple[Constraint, ...]
    estimates: Estimates
    demand: Demand

    @classmethod
    def of(
        cls,
        profile: Profile,
        drafter: str | None,
        demand: Demand,
        lengths: frozenset[int] | None = None,
        handover: Handover | None = None,
        undrafted: frozenset[int] = frozenset(),
    ) -> Self:
        """Solves a replica of this profile for this demand.

        Args:
            profile: Its operating points.
            drafter: One of its drafters, or none.
            demand: The requests.
            lengths: Draft lengths to look at; None for all that are covered.
            handover: Where prompts are processed, if on other engines.
            undrafted: Places of classes that go without drafts beside others that draft.

        Raises:
            InputError: The profile does not cover the demand.
        """
        load = Load.of(demand, handover)
        surfaces = Surfaces.of(profile, profile.drafters[drafter] if drafter else None)
        complaints = coverage.complaints(profile, demand, load, surfaces)
        try:
            variants = Variants.of(profile, drafter, demand, surfaces, lengths, undrafted)
        except InputError as error:
            raise InputError([*complaints, *error.complaints]) from error
        if complaints:
            raise InputError(complaints)
        # NaN stands for what was not measured and inf for waits without end: both are meant.
        with np.errstate(all="ignore"):
            replica = Replica.of(profile, drafter, load, surfaces, variants)
            estimates = latencies.estimates(replica, demand)
            constraints = capacities.constraints(replica, demand, estimates)
        return cls(replica, constraints, estimates, demand)


def same_engine(
    curve: Curve, profile: Profile, demand: Demand, handover: Handover | None = None
) -> tuple[Candidate, Curve]:
    """A replica with the engine's settings as they are, for another profile or demand.

    Args:
        curve: The replica as it is.
        profile: Its operating points there.
        demand: The requests there.
        handover: Another one than the replica's own, where it has one.
    """
    drafter = curve.replica.drafter if curve.loaded else None
    lengths = frozenset(curve.draft_lengths)
    where = handover or curve.replica.load.handover
    there = Candidate.of(profile, drafter, demand, lengths, where, curve.undrafted)
    return there, Curve.of(there.replica, there.constraints, curve.ranges, loaded=curve.loaded)


def in_part(candidate: Candidate) -> Iterator[Candidate]:
    """The same replica with the classes that keep fewest drafts left undrafted, one by one more.

    None where the engine cannot, or where fewer than two classes ask for anything.

    Args:
        candidate: All of its classes draft.
    """
    replica, demand = candidate.replica, candidate.demand
    if replica.drafter is None or not replica.profile.limits.drafts_by_request:
        return
    tokens = replica.variants.tokens_per_round[-1]
    asking = [place for place, traffic in enumerate(demand.classes) if any(traffic.rate_per_s)]
    rising = sorted(asking, key=lambda place: tokens[place])
    for count in range(1, len(rising)):
        yield Candidate.of(
            replica.profile,
            replica.drafter,
            demand,
            handover=replica.load.handover,
            undrafted=frozenset(rising[:count]),
        )
