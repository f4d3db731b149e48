"""Series as a CSV file that stands beside a forecast."""

import csv
import datetime as dt
import io
from collections.abc import Mapping, Sequence


def to_csv(start: dt.datetime, step_s: float, columns: Mapping[str, Sequence[float]]) -> str:
    """Text with a column of times, for people, and one a series.

    Args:
        start: Of the first interval.
        step_s: Length of an interval. [s]
        columns: Values by name, all of one length.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *columns])
    for place, row in enumerate(zip(*columns.values(), strict=True)):
        moment = start + dt.timedelta(seconds=place * step_s)
        writer.writerow([moment.isoformat(), *(f"{value:.10g}" for value in row)])
    return text.getvalue()
