"""Names for quantities: the SI unit, the bounds, and the suffix that a name must carry.

This is the only list of units. A field that holds a dimensional number is typed with one of
these, and its name ends in the unit's suffix (`step_s`, `idle_w`, `kv_bytes_per_token`); a test
walks every record and holds the two together. Milliseconds, kilowatts and gigabytes exist only
in the report room. Prices keep the units in which they are quoted (per hour, per kWh).

Bounds are far outside anything that exists: they keep slips of the keyboard out, and arithmetic
on whatever passes them cannot overflow.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, FiniteFloat


@dataclass(frozen=True)
class Unit:
    """The unit of a number; `suffix` is how the name of every field of this unit ends."""

    suffix: str


NO_SUFFIX = Unit("")
"""Marks dimensionless numbers: fractions, ratios, factors."""

Seconds = Annotated[FiniteFloat, Field(ge=0, le=1e10), Unit("s")]
SignedSeconds = Annotated[FiniteFloat, Field(ge=-1e10, le=1e10), Unit("s")]
PositiveSeconds = Annotated[FiniteFloat, Field(ge=1e-9, le=1e10), Unit("s")]
SquareSeconds = Annotated[FiniteFloat, Field(ge=-1e20, le=1e20), Unit("s2")]
"""A covariance of times."""
Watts = Annotated[FiniteFloat, Field(ge=0, le=1e24), Unit("w")]
GpuWatts = Annotated[FiniteFloat, Field(ge=0, le=1e6), Unit("w")]
"""Power of one device or one node."""
PositiveWatts = Annotated[FiniteFloat, Field(ge=1, le=1e9), Unit("w")]
Joules = Annotated[FiniteFloat, Field(ge=0), Unit("j")]
JoulesPerToken = Annotated[FiniteFloat, Field(ge=0), Unit("j_per_token")]
Bytes = Annotated[FiniteFloat, Field(ge=0, le=1e18), Unit("bytes")]
PositiveBytes = Annotated[FiniteFloat, Field(ge=1, le=1e18), Unit("bytes")]
BytesPerToken = Annotated[FiniteFloat, Field(ge=0, le=1e12), Unit("bytes_per_token")]
PositiveBytesPerToken = Annotated[FiniteFloat, Field(ge=1e-3, le=1e12), Unit("bytes_per_token")]
BytesPerSequence = Annotated[FiniteFloat, Field(ge=0, le=1e18), Unit("bytes_per_sequence")]
BytesPerSecond = Annotated[FiniteFloat, Field(gt=0, le=1e21), Unit("bytes_per_s")]
FlopPerSecond = Annotated[FiniteFloat, Field(gt=0, le=1e24), Unit("flop_per_s")]
LARGEST_PER_S = 1e12
PerSecond = Annotated[FiniteFloat, Field(ge=0, le=LARGEST_PER_S), Unit("per_s")]
TokensPerSecond = Annotated[FiniteFloat, Field(ge=0), Unit("tokens_per_s")]
Tokens = Annotated[FiniteFloat, Field(ge=0, le=1e12), Unit("tokens")]
AtLeastOneToken = Annotated[FiniteFloat, Field(ge=1, le=1e9), Unit("tokens")]
UsdPerHour = Annotated[FiniteFloat, Field(ge=0), Unit("usd_per_hour")]
UsdPerGpuHour = Annotated[FiniteFloat, Field(ge=0, le=1e6), Unit("usd_per_gpu_hour")]
UsdPerKwh = Annotated[FiniteFloat, Field(ge=0, le=1e6), Unit("usd_per_kwh")]
UsdPerMillionTokens = Annotated[FiniteFloat, Field(ge=0), Unit("usd_per_million_tokens")]

Fraction = Annotated[FiniteFloat, Field(ge=0, le=1), NO_SUFFIX]
Correlation = Annotated[FiniteFloat, Field(ge=-1, le=1), NO_SUFFIX]
Ratio = Annotated[FiniteFloat, Field(ge=0, le=1e18), NO_SUFFIX]
Slope = Annotated[FiniteFloat, Field(ge=-1e6, le=1e6), NO_SUFFIX]
"""Of a logarithm over a logarithm."""
SmallRatio = Annotated[FiniteFloat, Field(ge=0, le=100), NO_SUFFIX]
"""A coefficient of variation, an overhead."""
RelativeError = Annotated[FiniteFloat, Field(ge=-1), NO_SUFFIX]
"""Predicted over measured, less one."""
Compared = Annotated[FiniteFloat, Field(gt=0), NO_SUFFIX]
"""A quantity, its unit told beside it, that a prediction is held against."""
Factor = Annotated[FiniteFloat, Field(ge=1e-6, le=1e6), NO_SUFFIX]
Parameters = Annotated[FiniteFloat, Field(ge=1, le=1e18), NO_SUFFIX]
"""A number of weights."""
AtLeastOne = Annotated[FiniteFloat, Field(ge=1, le=1000), NO_SUFFIX]
MeanCount = Annotated[FiniteFloat, Field(ge=0), NO_SUFFIX]
"""A mean of a count (a batch averaged over time, distinct experts of a step): not whole."""

Count = Annotated[int, Field(ge=0)]
PositiveCount = Annotated[int, Field(ge=1, le=1_000_000_000)]
SmallCount = Annotated[int, Field(ge=1, le=1_000_000)]
"""GPUs of a replica or a node, sequences of a batch, units of a rack."""
