"""The plan with every stated band at its good end, and at its bad end.

Ends taken together are wider than any likely outcome: a range to stay inside, not a forecast.
"""

from typing import Literal, TypeVar

from capplan.records.forecast import Scenarios
from capplan.records.plan import ClassDemand, Demand
from capplan.records.profile import (
    Acceptance,
    Drafter,
    DraftTable,
    MixedTable,
    PrefillTable,
    Profile,
    StepTable,
)

End = Literal["good", "bad"]
Table = TypeVar("Table", StepTable, MixedTable, PrefillTable, DraftTable)


def profile_at(profile: Profile, end: End) -> Profile:
    """The profile with times and acceptance at one end of their intervals."""
    drafters = {name: _drafter_at(drafter, end) for name, drafter in profile.drafters.items()}
    return profile.model_copy(
        update={
            "steps": _table_at(profile.steps, "step_s", end),
            "mixed": _table_at(profile.mixed, "step_s", end),
            "prefill": _table_at(profile.prefill, "step_s", end),
            "drafters": drafters,
        }
    )


def peak_at(demand: Demand, interval: int, scenarios: Scenarios | None, end: End) -> Demand:
    """One interval of a demand, at its low or its high scenario."""
    factor = 1.0
    if scenarios is not None:
        factor = scenarios.low if end == "good" else scenarios.high
    classes = tuple(_class_at(traffic, interval, factor, end) for traffic in demand.classes)
    return demand.model_copy(update={"classes": classes})


def _class_at(traffic: ClassDemand, interval: int, factor: float, end: End) -> ClassDemand:
    own = traffic.acceptance
    return traffic.model_copy(
        update={
            "rate_per_s": (traffic.rate_per_s[interval] * factor,),
            "acceptance": own and {name: _acceptance_at(one, end) for name, one in own.items()},
        }
    )


def _table_at(table: Table, time: str, end: End) -> Table:
    bound = "low_s" if end == "good" else "high_s"
    rows = tuple(
        row if getattr(row, bound) is None else row.model_copy(update={time: getattr(row, bound)})
        for row in table.rows
    )
    return table.model_copy(update={"rows": rows})


def _drafter_at(drafter: Drafter, end: End) -> Drafter:
    acceptance = {name: _acceptance_at(one, end) for name, one in drafter.acceptance.items()}
    return drafter.model_copy(
        update={"acceptance": acceptance, "draft": _table_at(drafter.draft, "draft_s", end)}
    )


def _acceptance_at(table: Acceptance, end: End) -> Acceptance:
    shares = table.high_share if end == "good" else table.low_share
    if shares is None:
        return table
    return table.model_copy(update={"accepted_share": shares, "accepted": None, "rounds": None})
