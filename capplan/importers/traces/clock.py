"""Times of arrival to seconds: ISO 8601 with or without a zone, or numbers of a known unit."""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from capplan.importers.traces.layout import Unit
from capplan.records.trace import Floats

PER_SECOND: dict[Unit, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_EARLIEST_S, _LATEST_S = 946_684_800.0, 4_102_444_800.0
"""2000 and 2100: seconds between them count from 1970."""
_LONGEST_S = 3e8
"""Ten years: no trace that counts from nought is longer."""
_RANGE = "must lie between 1970 and 2100, or within ten years of a start at nought"
_ZONE = re.compile(r"(?:Z|z|[+-]\d\d(?::?\d\d)?)\Z")
_OTHER = re.compile(r"[^0-9T:. -]")
_HOUR_S = 3600


class Clock:
    """Reads the arrivals of one table; the first row says what the others must be like."""

    def __init__(self, unit: Unit | None, zone: ZoneInfo | None) -> None:
        self.unit = unit
        self._zone = zone
        self.numeric: bool | None = None
        self.zoned: bool | None = None
        self.dated = True

    def start(self, first: Any) -> None:
        """Takes the first arrival as the pattern.

        Raises:
            ValueError: It is no time, or a number whose unit could be several.
        """
        number = _number(first)
        self.numeric = number is not None
        if number is None:
            self.zoned = self._moment(first).tzinfo is not None
            return
        if self.unit is None:
            self.unit = _unit_of(number)
        self.dated = _EARLIEST_S <= number / PER_SECOND[self.unit] < _LATEST_S

    def block(self, values: Sequence[Any]) -> Floats:
        """Many arrivals at once [s].

        Raises:
            ValueError: One of them at least needs a look of its own.
        """
        if self.numeric:
            assert self.unit is not None
            numbers = np.array([float(value) for value in values])
            return self._checked(numbers / PER_SECOND[self.unit])
        return self._checked(self._to_utc(*self._iso_block(values)))

    def one(self, value: Any) -> float:
        """One arrival [s].

        Raises:
            ValueError: It is no time of the kind the first row has; the text is the rule.
        """
        if self.numeric:
            number = _number(value)
            assert self.unit is not None
            if number is None or number < 0:
                raise ValueError("must be a number of at least 0, as in the first row")
            return float(self._checked(np.array([number / PER_SECOND[self.unit]]))[0])
        moment = self._moment(value)
        if (moment.tzinfo is not None) != self.zoned:
            has, first = ("a", "none") if moment.tzinfo else ("no", "one")
            raise ValueError(f"has {has} zone where the first row has {first}")
        naive = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
        found = self._checked(np.array([naive.timestamp()]))
        return float(self._to_utc(found, zoned=moment.tzinfo is not None)[0])

    def _checked(self, arrival_s: Floats) -> Floats:
        latest = _LATEST_S if self.dated else _LONGEST_S
        if not ((arrival_s >= 0) & (arrival_s < latest)).all():
            raise ValueError(_RANGE)
        return arrival_s

    @staticmethod
    def _moment(value: Any) -> dt.datetime:
        try:
            return dt.datetime.fromisoformat(value.strip())
        except (AttributeError, ValueError):
            raise ValueError("must be a time like 2024-05-10 00:00:00.123+00:00") from None

    def _iso_block(self, values: Sequence[Any]) -> tuple[Floats, bool]:
        """Seconds of texts that all end in the same zone, or in none."""
        match = _ZONE.search(values[0]) if self.zoned else None
        zone = match.group() if match else ""
        if bool(zone) != self.zoned or not all(text.endswith(zone) for text in values):
            raise ValueError
        texts = [text[: len(text) - len(zone)] for text in values]
        joined = "".join(texts)
        # numpy would take `now`, and a date's minus may be a zone's.
        if (
            _OTHER.search(joined)
            or joined.count("-") != 2 * len(texts)
            or min(map(len, texts)) < 16
        ):
            raise ValueError
        moments = np.array(texts, dtype="datetime64[ns]").astype(np.int64) / 1e9
        return moments - _offset_s(zone), bool(zone)

    def _to_utc(self, naive_s: Floats, zoned: bool) -> Floats:
        """Local times to UTC by the offset of each hour; of a doubled hour the first is meant."""
        if zoned or self._zone is None:
            return naive_s
        hours, place = np.unique(naive_s // _HOUR_S, return_inverse=True)
        offsets = [
            dt.datetime.fromtimestamp(hour * _HOUR_S, dt.UTC).replace(tzinfo=self._zone).utcoffset()
            for hour in hours.tolist()
        ]
        shift = np.array([offset.total_seconds() if offset else 0.0 for offset in offsets])
        return np.asarray(naive_s - shift[place])


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def _unit_of(number: float) -> Unit:
    for unit, per_second in PER_SECOND.items():
        if _EARLIEST_S <= number / per_second < _LATEST_S:
            return unit
    raise ValueError(
        "does not say its unit: name it, as in --map arrival=COLUMN:ms (s, ms, us, ns)"
    )


def _offset_s(zone: str) -> float:
    if zone in {"", "Z", "z"}:
        return 0.0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return float(-seconds if zone[0] == "-" else seconds)
