"""Demand: what the user expects to be asked of the fleet, and how fast it must answer."""

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from capplan.records.acceptance import Acceptance
from capplan.records.base import Record
from capplan.records.caveat import Source
from capplan.units import (
    AtLeastOne,
    AtLeastOneToken,
    Correlation,
    Factor,
    Fraction,
    PerSecond,
    PositiveCount,
    PositiveSeconds,
    Ratio,
    SmallRatio,
)

Quantile = Literal[
    "p01", "p05", "p10", "p20", "p25", "p30", "p40", "p50",
    "p60", "p70", "p75", "p80", "p90", "p95", "p97", "p98", "p99", "p995", "p999",
]  # fmt: skip
BandQuantile = Literal["p05", "p25", "p50", "p75", "p90", "p95"]
Metric = Literal["ttft", "tpot", "chunk_gap"]
Objective = Literal[
    "ttft_p50_s",
    "ttft_p90_s",
    "ttft_p95_s",
    "ttft_p99_s",
    "tpot_p50_s",
    "tpot_p90_s",
    "tpot_p95_s",
    "tpot_p99_s",
    "chunk_gap_p50_s",
    "chunk_gap_p90_s",
    "chunk_gap_p95_s",
    "chunk_gap_p99_s",
]
"""ttft: from a request's arrival to its first token. tpot: the rest of the answer divided by its
tokens, per request. chunk_gap: between two streamed chunks, which is one round under speculation.
There is no `itl`: tools disagree on what it means once a step emits several tokens."""


class TimeAxis(Record):
    """When the series begins, with its zone, and how long one interval lasts."""

    start: AwareDatetime
    step_s: Annotated[PositiveSeconds, Field(ge=1, le=31 * 86_400)]


class Series(Record):
    """A column of a CSV file that stands beside the forecast."""

    file: str
    column: str


class Daily(Record):
    """A smooth day: a cosine between trough and peak."""

    peak_per_s: PerSecond
    trough: Fraction
    """Lowest hour over the peak hour."""
    peak_hour: Annotated[int, Field(ge=0, le=23)]
    days: PositiveCount
    weekend: Fraction = 1.0
    """Saturday and Sunday over a working day."""


class Rate(Record):
    """Requests a second in each interval, before growth; exactly one way of saying it."""

    series: Series | None = None
    values_per_s: tuple[PerSecond, ...] | None = Field(default=None, min_length=1)
    daily: Daily | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [
            key for key in ("series", "values_per_s", "daily") if getattr(self, key) is not None
        ]
        if len(given) != 1:
            raise ValueError("needs exactly one of series, values_per_s and daily")
        return self


class BackTest(Record):
    """How a band did on days that it had not seen."""

    held_back_days: PositiveCount
    coverage_50: Fraction
    """Part of the intervals between p25 and p75; half of them should be."""
    coverage_90: Fraction
    """Part between p05 and p95; nine tenths should be."""
    loss_over_naive: Ratio
    """Mean quantile loss over that of the best seasonal-naive forecast; below 1 is better."""


class Band(Record):
    """Where the rate of all classes will lie, interval by interval, before growth."""

    method: str
    quantiles: dict[BandQuantile, Rate] = Field(min_length=1)
    back_test: BackTest | None = None


class Burstiness(Record):
    """How unevenly requests come within an interval; all are 1 where they come at random."""

    gap_cv: Ratio
    """Standard deviation over mean of the time between requests."""
    dispersion_1s: Ratio | None = None
    """Variance over mean of the requests in a second, around the interval's own mean."""
    dispersion_10s: Ratio | None = None
    dispersion_60s: Ratio | None = None


class Lengths(Record):
    """A distribution of token counts: log-normal by mean and cv, or by quantiles."""

    mean_tokens: AtLeastOneToken | None = None
    cv: SmallRatio | None = None
    """Standard deviation over mean."""
    quantiles: dict[Quantile, AtLeastOneToken] | None = Field(default=None, min_length=2)
    max_tokens: AtLeastOneToken
    """No request is longer: the context limit, or the longest seen."""

    @model_validator(mode="after")
    def _described(self) -> Self:
        if self.quantiles is None and (self.mean_tokens is None or self.cv is None):
            raise ValueError("needs mean_tokens with cv, or quantiles")
        if self.quantiles is not None and self.cv is not None:
            raise ValueError("takes cv or quantiles, not both")
        if self.quantiles is not None:
            values = [self.quantiles[key] for key in sorted(self.quantiles)]
            if values != sorted(values) or values[-1] > self.max_tokens:
                raise ValueError(
                    "quantiles must rise with their percentage and stay within max_tokens"
                )
        if self.mean_tokens is not None and self.mean_tokens > self.max_tokens:
            raise ValueError("mean_tokens must not exceed max_tokens")
        return self


class TrafficClass(Record):
    """Requests that look alike and share objectives."""

    name: str
    share: Fraction | None = None
    """Part of the forecast's rate; instead of a rate of its own."""
    rate: Rate | None = None
    input_tokens: Lengths
    output_tokens: Lengths
    length_correlation: Correlation | None = None
    """Spearman's, between a request's prompt and answer; None where nobody looked."""
    prefix_reuse: Fraction = 0.0
    """Part of the prompt whose keys and values are already cached."""
    acceptance_workload: str | None = None
    """Which of the profile's acceptance tables describes this class."""
    acceptance: dict[str, Acceptance] | None = None
    """Acceptance measured on this very traffic, by drafter; goes before the profile's."""
    objectives: dict[Objective, PositiveSeconds]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.share is None) == (self.rate is None):
            raise ValueError("needs exactly one of share and rate")
        metrics = {objective.rsplit("_p", 1)[0] for objective in self.objectives}
        if "ttft" not in metrics or not metrics & {"tpot", "chunk_gap"}:
            raise ValueError(
                "objectives need a ttft and a tpot or chunk_gap, as in ttft_p99: 2s, tpot_p99: 40ms"
            )
        return self


class Scenarios(Record):
    """Demand as factors on the forecast, for the range around the plan."""

    low: Annotated[Factor, Field(le=1)]
    high: Annotated[Factor, Field(ge=1)]


class Forecast(Record):
    """Everything about the traffic that a plan needs."""

    version: Literal[1]
    name: str
    model: str
    time: TimeAxis
    rate: Rate | None = None
    """Rate of all classes that give a share."""
    growth: Factor = 1.0
    """Factor from the series to the planning date."""
    peak_minute_over_mean: AtLeastOne = 1.15
    """Busiest minute over its interval's mean: the fleet is sized for that minute."""
    burstiness: Burstiness | None = None
    band: Band | None = None
    scenarios: Scenarios | None = None
    classes: tuple[TrafficClass, ...] = Field(min_length=1)
    source: Source | None = None
    caveats: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _shares(self) -> Self:
        names = [traffic.name for traffic in self.classes]
        if len(set(names)) != len(names):
            raise ValueError("class names must differ")
        shares = [traffic.share for traffic in self.classes if traffic.share is not None]
        if (self.rate is not None) != bool(shares):
            raise ValueError("rate and the classes' shares need one another: give both or neither")
        if shares and abs(sum(shares) - 1) > 1e-6:
            raise ValueError(f"shares of the classes must sum to 1, they sum to {sum(shares):g}")
        return self
