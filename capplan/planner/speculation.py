"""Draft lengths that a replica may run, and the tokens they yield for each class.

Speculation is resolved here, once: later steps see rounds, their times and their tokens.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.physics import acceptance
from capplan.physics.surface import Array
from capplan.planner.surfaces import Surfaces
from capplan.records.plan import ClassDemand, Demand
from capplan.records.profile import Acceptance, Drafter, Profile

_Z01 = NormalDist().inv_cdf(0.01)
_Z10 = NormalDist().inv_cdf(0.10)


@dataclass(frozen=True)
class Variants:
    """The ways in which a round may run; the first is plain with no drafter loaded.

    Attributes:
        draft_tokens: By variant. [variants]
        loaded: Whether a drafter is in memory. [variants]
        tokens_per_round: By variant and class. [variants, classes]
        unlucky_tokens_per_round: Of the request at the 1st percentile of acceptance. Same shape.
        cautious_tokens_per_round: Of the request at the 10th. Same shape.
        variance: Of the tokens of one round. Same shape.
    """

    draft_tokens: tuple[int, ...]
    loaded: tuple[bool, ...]
    tokens_per_round: Array
    unlucky_tokens_per_round: Array
    cautious_tokens_per_round: Array
    variance: Array

    @classmethod
    def of(
        cls,
        profile: Profile,
        drafter: str | None,
        demand: Demand,
        surfaces: Surfaces,
        only: frozenset[int] | None = None,
    ) -> Self:
        """Draft lengths that the profile covers for every class, nought included.

        Args:
            profile: For its acceptance.
            drafter: One of its drafters, or none.
            demand: The classes.
            surfaces: What was measured.
            only: The lengths to look at; None for all.

        Raises:
            InputError: A class names no acceptance that the profile or the forecast knows.
        """
        if drafter is None:
            ones = np.ones((1, len(demand.classes)))
            return cls((0,), (False,), ones, ones, ones, np.zeros_like(ones))
        found = tables(profile, drafter, demand)
        lengths = _draft_lengths(profile.drafters[drafter], found, surfaces)
        if lengths == [0]:
            raise InputError([_unverified(profile, drafter)])
        lengths = [length for length in lengths if only is None or length in only]
        yields = np.array([_yields(table)[:, lengths] for table in found])
        plain = np.broadcast_to([[1.0], [1.0], [1.0], [0.0]], (len(found), 4, 1))
        mean, unlucky, cautious, variance = np.concatenate([plain, yields], axis=2).transpose(
            1, 2, 0
        )
        return cls(
            (0, *lengths), (False, *[True] * len(lengths)), mean, unlucky, cautious, variance
        )

    def index(self, draft_tokens: int) -> int:
        """The variant that drafts this many tokens, with the drafter loaded."""
        return self.draft_tokens.index(draft_tokens, 1)


def _yields(table: Acceptance) -> Array:
    """Mean, unlucky and cautious tokens a round, and their variance. [4, positions + 1]."""
    shares = shares_of(table)
    return np.array(
        [
            acceptance.tokens_per_round(shares),
            *(
                acceptance.tokens_per_round(
                    acceptance.shifted_shares(shares, z * table.per_request_sd)
                )
                for z in (_Z01, _Z10)
            ),
            acceptance.tokens_per_round_variance(shares),
        ]
    )


def shares_of(table: Acceptance) -> Array:
    """Part of rounds that keep each position. [positions]."""
    if table.accepted_share is not None:
        return np.array(table.accepted_share)
    assert table.accepted is not None
    assert table.rounds is not None
    return np.array(table.accepted) / table.rounds


def _draft_lengths(drafter: Drafter, tables: list[Acceptance], surfaces: Surfaces) -> list[int]:
    """Nought and every length for which acceptance, verification and drafting were measured."""
    assert surfaces.draft is not None
    longest = min(
        *(len(shares_of(table)) for table in tables),
        int(surfaces.step.axes[2][-1]) - 1,
        int(surfaces.increment.axes[2][-1]) - 1,
        int(surfaces.draft.axes[1][-1]),
    )
    if drafter.kind == "parallel":
        # A block drafter's position i depends on the block's length: only that length is known.
        (measured, *others) = {len(shares_of(table)) for table in tables}
        return [0, measured] if not others and measured <= longest else [0]
    return list(range(longest + 1))


def tables(profile: Profile, drafter: str, demand: Demand) -> list[Acceptance]:
    """The acceptance of each class: its own, or the profile's for its workload.

    Raises:
        InputError: A class has neither.
    """
    known = profile.drafters[drafter].acceptance
    found, complaints = [], []
    for place, traffic in enumerate(demand.classes):
        table = _table(known, drafter, traffic)
        if table is None:
            complaints.append(_unknown(profile, drafter, demand, place))
        else:
            found.append(table)
    if complaints:
        raise InputError(complaints)
    return found


def _table(known: dict[str, Acceptance], drafter: str, traffic: ClassDemand) -> Acceptance | None:
    if traffic.acceptance is not None and drafter in traffic.acceptance:
        return traffic.acceptance[drafter]
    return known.get(traffic.acceptance_workload or "")


def _unknown(profile: Profile, drafter: str, demand: Demand, place: int) -> Complaint:
    traffic = demand.classes[place]
    workloads = ", ".join(sorted(profile.drafters[drafter].acceptance))
    found = traffic.acceptance_workload or "nothing"
    if traffic.acceptance:
        found += f", and acceptance of its own for {', '.join(traffic.acceptance)}"
    return Complaint(
        place=f"forecast {demand.forecast}",
        key=f"classes.{place}.acceptance_workload",
        rule=f"must be one that {profile.name} has for its drafter {drafter}: {workloads}",
        found=found,
        remedy=f"name one of them, give the class acceptance for {drafter}, or plan --policy plain",
    )


def _unverified(profile: Profile, drafter: str) -> Complaint:
    return Complaint(
        place=f"profile {profile.name}",
        key="steps",
        rule=f"hold no verification that drafter {drafter} could use: query_tokens 2 and more "
        "must be in steps and in mixed",
        remedy="measure them, or plan --policy plain",
    )
