"""How many drafts a target keeps: totals by position, and request by request."""

from typing import Literal, Self

from pydantic import Field, model_validator

from capplan.records.base import Record
from capplan.records.caveat import Origin
from capplan.units import Count, Fraction, PositiveCount, SmallRatio

DrafterKind = Literal["autoregressive", "parallel", "ngram"]
"""parallel drafters propose a block: their acceptance holds only at the length measured."""


class RequestCounts(Record):
    """What one request took; of its text nothing is kept."""

    rounds: PositiveCount
    drafted_rounds: Count
    """Rounds in which the drafter proposed anything."""
    accepted: tuple[Count, ...] = Field(min_length=1)
    """Rounds in which the draft at position 1, 2, … was kept."""


class RequestTable(Record):
    """Requests in the order of their prompts."""

    rows: tuple[RequestCounts, ...] = Field(min_length=1)


class Acceptance(Record):
    """How many drafts the target keeps, by position: counts, or shares if only those are known."""

    rounds: PositiveCount | None = None
    accepted: tuple[Count, ...] | None = Field(default=None, min_length=1)
    """Rounds in which the draft at position 1, 2, … was kept."""
    drafted_rounds: Count | None = None
    """Rounds in which the drafter proposed anything; the rest yield one token each."""
    accepted_share: tuple[Fraction, ...] | None = Field(default=None, min_length=1)
    """The same over rounds."""
    low_share: tuple[Fraction, ...] | None = None
    """Pessimistic end of what the share may be."""
    high_share: tuple[Fraction, ...] | None = None
    per_request_sd: Fraction
    """Standard deviation between requests of the chance that a draft is kept."""
    temperature: SmallRatio | None = None
    origin: Origin
    requests: RequestTable | None = None
    """The counts of each request, which add up to those above."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        counted = self.rounds is not None and self.accepted is not None
        if counted == (self.accepted_share is not None) or (self.rounds is None) != (
            self.accepted is None
        ):
            raise ValueError("needs rounds with accepted, or accepted_share")
        if (
            self.accepted is not None
            and self.rounds is not None
            and max(self.accepted) > self.rounds
        ):
            raise ValueError("accepted must not exceed rounds")
        lengths = set()
        for shares in (self.accepted, self.accepted_share, self.low_share, self.high_share):
            if shares is not None:
                lengths.add(len(shares))
                if list(shares) != sorted(shares, reverse=True):
                    raise ValueError(
                        "a position cannot be accepted more often than the one before it"
                    )
        if len(lengths) > 1:
            raise ValueError("low_share and high_share must have as many positions as the table")
        self._check_band()
        self._check_requests()
        return self

    def _check_band(self) -> None:
        shares = self.accepted_share
        if self.accepted is not None and self.rounds is not None:
            shares = tuple(kept / self.rounds for kept in self.accepted)
        assert shares is not None
        band = zip(self.low_share or shares, shares, self.high_share or shares, strict=True)
        if any(not low <= share <= high for low, share, high in band):
            raise ValueError("low_share must not exceed the share, nor high_share stay below it")

    def _check_requests(self) -> None:
        if self.drafted_rounds is not None and self.drafted_rounds > (self.rounds or 0):
            raise ValueError("drafted_rounds must not exceed rounds")
        if self.requests is None:
            return
        rows = self.requests.rows
        if {len(row.accepted) for row in rows} != {len(self.accepted or ())}:
            raise ValueError("every request must have as many positions as the table")
        sums = (
            sum(row.rounds for row in rows),
            sum(row.drafted_rounds for row in rows),
            tuple(map(sum, zip(*(row.accepted for row in rows), strict=True))),
        )
        if sums != (self.rounds, self.drafted_rounds, self.accepted):
            raise ValueError("the counts of requests must add up to those of all")


class MeasuredAcceptance(Record):
    """Acceptance on its own, to be put beside a drafter's times in a profile."""

    drafter: str
    kind: DrafterKind
    description: str
    acceptance: dict[str, Acceptance] = Field(min_length=1)
    """By workload, as a profile has it under the drafter."""
