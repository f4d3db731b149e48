"""What a service's history says, before anybody's wishes: what `capplan forecast` shows."""

import datetime as dt
from typing import Annotated

from pydantic import AwareDatetime, Field

from capplan.records.base import Record
from capplan.records.forecast import BackTest, BandQuantile, Burstiness, Lengths
from capplan.units import (
    AtLeastOne,
    Correlation,
    Count,
    Fraction,
    MeanCount,
    PerSecond,
    PositiveSeconds,
    Ratio,
)


class FileRead(Record):
    """One source and what became of its rows."""

    place: str
    format: str
    rows: Count
    """Data rows or intervals that the source holds, as far as it was read."""
    kept: Count
    bad: Count = 0
    """Rows that break a rule, left out because the user allowed so many."""
    unanswered: Count = 0
    """Requests without an output token, left out."""


class ClassSeen(Record):
    """Requests of one class."""

    name: str
    share: Fraction
    """Part of all requests."""
    requests: MeanCount
    """How many its lengths were taken from."""
    input_tokens: Lengths | None
    """None where no source says."""
    output_tokens: Lengths | None
    length_correlation: Correlation | None
    prefix_reuse: Fraction | None


class Outlook(Record):
    """The hours that follow, by the method that did best on days held back."""

    start: AwareDatetime
    method: str
    quantiles_per_s: dict[BandQuantile, tuple[PerSecond, ...]]
    """Of all classes together, an hour each. [1/s]"""
    back_test: BackTest


class History(Record):
    """All of it, over intervals of one length."""

    capplan: str
    files: tuple[FileRead, ...]
    start: AwareDatetime
    dated: bool
    """Whether the sources tell the date; else `start` is a label."""
    step_s: PositiveSeconds
    rate_per_s: Annotated[tuple[PerSecond | None, ...], Field(min_length=1)]
    """Of all classes; None where nobody looked."""
    class_rates_per_s: dict[str, tuple[PerSecond | None, ...]]
    classes: tuple[ClassSeen, ...]
    peak_minute_over_mean: AtLeastOne | None
    """Busiest minute over the busiest interval; None where the source tells no minutes."""
    burstiness: Burstiness | None
    week_over_week: Ratio | None
    """Mean rate of the last seven days over the seven before; None below two weeks."""
    outlook: Outlook | None
    caveats: tuple[str, ...]

    @property
    def step(self) -> dt.timedelta:
        """Length of an interval."""
        return dt.timedelta(seconds=self.step_s)
