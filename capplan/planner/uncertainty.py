"""The plan with every stated band at its good end, and at its bad end.

Ends taken together are wider than any likely outcome: a range to stay inside, not a forecast.
"""

from collections.abc import Callable
from typing import Literal, TypeVar

from capplan.planner.demand import interval_alone
from capplan.records.acceptance import Acceptance
from capplan.records.forecast import Scenarios
from capplan.records.plan import Demand
from capplan.records.profile import (
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
    alone = interval_alone(demand, interval, factor)
    return with_acceptance(alone, lambda table: acceptance_at(table, end))


def with_acceptance(demand: Demand, change: Callable[[Acceptance], Acceptance]) -> Demand:
    """A demand with the acceptance that its classes bring changed."""
    classes = tuple(
        traffic.model_copy(
            update={"acceptance": own and {name: change(table) for name, table in own.items()}}
        )
        for traffic in demand.classes
        for own in (traffic.acceptance,)
    )
    return demand.model_copy(update={"classes": classes})


def _table_at(table: Table, time: str, end: End) -> Table:
    bound = "low_s" if end == "good" else "high_s"
    rows = tuple(
        row if getattr(row, bound) is None else row.model_copy(update={time: getattr(row, bound)})
        for row in table.rows
    )
    return table.model_copy(update={"rows": rows})


def _drafter_at(drafter: Drafter, end: End) -> Drafter:
    acceptance = {name: acceptance_at(one, end) for name, one in drafter.acceptance.items()}
    return drafter.model_copy(
        update={"acceptance": acceptance, "draft": _table_at(drafter.draft, "draft_s", end)}
    )


def acceptance_at(table: Acceptance, end: End) -> Acceptance:
    """One acceptance table at the good or bad end of its band."""
    shares = table.high_share if end == "good" else table.low_share
    if shares is None:
        return table
    return table.model_copy(update={"accepted_share": shares, "accepted": None, "rounds": None})
