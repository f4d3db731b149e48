"""Names for quantities: the SI unit, the bounds, and the suffix that a name must carry.

This is the only list of units. A field that holds a dimensional number is typed with one of
these, and its name ends in the unit's suffix (`step_s`, `idle_w`, `kv_bytes_per_token`); a test
walks every record and holds the two together. Milliseconds, kilowatts and gigabytes exist only
in the report room. Prices keep the units in which they are quoted (per hour, per kWh).
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

Seconds = Annotated[FiniteFloat, Field(ge=0), Unit("s")]
PositiveSeconds = Annotated[FiniteFloat, Field(gt=0), Unit("s")]
Watts = Annotated[FiniteFloat, Field(ge=0), Unit("w")]
Joules = Annotated[FiniteFloat, Field(ge=0), Unit("j")]
JoulesPerToken = Annotated[FiniteFloat, Field(ge=0), Unit("j_per_token")]
Bytes = Annotated[FiniteFloat, Field(ge=0), Unit("bytes")]
BytesPerToken = Annotated[FiniteFloat, Field(ge=0), Unit("bytes_per_token")]
BytesPerSequence = Annotated[FiniteFloat, Field(ge=0), Unit("bytes_per_sequence")]
BytesPerSecond = Annotated[FiniteFloat, Field(gt=0), Unit("bytes_per_s")]
FlopPerSecond = Annotated[FiniteFloat, Field(gt=0), Unit("flop_per_s")]
PerSecond = Annotated[FiniteFloat, Field(ge=0), Unit("per_s")]
TokensPerSecond = Annotated[FiniteFloat, Field(ge=0), Unit("tokens_per_s")]
Tokens = Annotated[FiniteFloat, Field(ge=0), Unit("tokens")]
UsdPerHour = Annotated[FiniteFloat, Field(ge=0), Unit("usd_per_hour")]
UsdPerGpuHour = Annotated[FiniteFloat, Field(ge=0), Unit("usd_per_gpu_hour")]
UsdPerKwh = Annotated[FiniteFloat, Field(ge=0), Unit("usd_per_kwh")]
UsdPerMillionTokens = Annotated[FiniteFloat, Field(ge=0), Unit("usd_per_million_tokens")]

Fraction = Annotated[FiniteFloat, Field(ge=0, le=1), NO_SUFFIX]
Ratio = Annotated[FiniteFloat, Field(ge=0), NO_SUFFIX]
PositiveRatio = Annotated[FiniteFloat, Field(gt=0), NO_SUFFIX]
AtLeastOne = Annotated[FiniteFloat, Field(ge=1), NO_SUFFIX]
MeanCount = Annotated[FiniteFloat, Field(ge=0), NO_SUFFIX]
"""A mean of a count (a batch averaged over time, distinct experts of a step): not whole."""

Count = Annotated[int, Field(ge=0)]
PositiveCount = Annotated[int, Field(ge=1)]
