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
from capplan.records.acceptance import Acceptance
from capplan.records.plan import ClassDemand, Demand
from capplan.records.profile import Drafter, Profile

_Z01 = NormalDist().inv_cdf(0.01)
_Z10 = NormalDist().inv_cdf(0.10)
_PLAIN = np.array([[1.0], [1.0], [1.0], [0.0]])
"""Mean, unlucky and cautious tokens a round, and their variance, where nothing is drafted."""


@dataclass(frozen=True)
class Variants:
    """The ways in which a round may run; of all of them the first is plain, no drafter loaded.

    Attributes:
        draft_tokens: By variant. [variants]
        loaded: Whether a drafter is in memory. [variants]
        tokens_per_round: By variant and class. [variants, classes]
        unlucky_tokens_per_round: Of the request at the 1st percentile of acceptance. Same shape.
        cautious_tokens_per_round: Of the request at the 10th. Same shape.
        variance: Of the tokens of one round. Same shape.
        undrafted: Places of classes that go without drafts where others draft.
    """

    draft_tokens: tuple[int, ...]
    loaded: tuple[bool, ...]
    tokens_per_round: Array
    unlucky_tokens_per_round: Array
    cautious_tokens_per_round: Array
    variance: Array
    undrafted: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        profile: Profile,
        drafter: str | None,
        demand: Demand,
        surfaces: Surfaces,
        only: frozenset[int] | None = None,
        undrafted: frozenset[int] = frozenset(),
    ) -> Self:
        """Draft lengths that the profile covers for every class that drafts, nought included.

        Args:
            profile: For its acceptance.
            drafter: One of its drafters, or none.
            demand: The classes.
            surfaces: What was measured.
            only: The lengths to look at, with the drafter loaded; None for all, and for plain
                without it.
            undrafted: Places of classes that go without drafts; not of all.

        Raises:
            InputError: A class names no acceptance that the profile or the forecast knows, or a
                length in `only` is not covered.
        """
        if drafter is None:
            ones = np.ones((1, len(demand.classes)))
            return cls((0,), (False,), ones, ones, ones, np.zeros_like(ones))
        found = tables(profile, drafter, demand)
        drafting = [table for place, table in enumerate(found) if place not in undrafted]
        lengths = _draft_lengths(profile.drafters[drafter], drafting, surfaces)
        if lengths == [0]:
            raise InputError([_unverified(profile, drafter)])
        if only is not None:
            _check_covered(profile, only - set(lengths))
            lengths = sorted(only)
        yields = np.tile(_PLAIN, (len(found), 1, 1 + len(lengths)))
        for place, table in enumerate(found):
            if place not in undrafted:
                yields[place, :, 1:] = _yields(table)[:, lengths]
        mean, unlucky, cautious, variance = yields.transpose(1, 2, 0)
        first = 0 if only is None else 1
        return cls(
            (0, *lengths)[first:],
            (False, *[True] * len(lengths))[first:],
            mean[first:],
            unlucky[first:],
            cautious[first:],
            variance[first:],
            undrafted,
        )

    def index(self, draft_tokens: int) -> int:
        """The variant that drafts this many tokens, with the drafter loaded."""
        return self.draft_tokens.index(draft_tokens, self.loaded.index(True))


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


def _check_covered(profile: Profile, missing: frozenset[int]) -> None:
    if missing:
        rule = "must cover draft lengths that are planned with"
        found = f"no {', '.join(map(str, sorted(missing)))}"
        raise InputError([Complaint(f"profile {profile.name}", "drafters", rule, found)])


def _unverified(profile: Profile, drafter: str) -> Complaint:
    return Complaint(
        place=f"profile {profile.name}",
        key="steps",
        rule=f"hold no verification that drafter {drafter} could use: query_tokens 2 and more "
        "must be in steps and in mixed",
        remedy="measure them, or plan --policy plain",
    )
