"""Prometheus' HTTP API, as much of it as a history needs.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/.
"""

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from capplan.errors import Complaint, InputError

_TIMEOUT_S = 60.0
_LARGEST_BYTES = 256 << 20
_MOST_POINTS = 10_000
"""A series of one answer; the server's own limit is 11,000."""


@dataclass(frozen=True)
class Line:
    """One series: its labels and its values by time."""

    labels: dict[str, str]
    values: dict[float, float]
    """Time [s] to value."""


class Prometheus:
    """A server that answers queries."""

    def __init__(self, url: str) -> None:
        """A server at the address where its web page is.

        Raises:
            InputError: It is no http address.
        """
        if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
            rule = "must begin with http:// or https://"
            raise InputError([Complaint("--prometheus", "", rule, url)])
        self.url = url.rstrip("/")

    def now(self, query: str, time_s: float) -> list[Line]:
        """The value of a query at one moment.

        Raises:
            InputError: The server cannot be asked, or refuses.
        """
        found = self._ask("query", {"query": query, "time": f"{time_s:.3f}"})
        return [
            Line(one["metric"], {float(one["value"][0]): float(one["value"][1])}) for one in found
        ]

    def over(self, query: str, begin_s: float, end_s: float, step_s: float) -> list[Line]:
        """Values of a query at begin, begin + step and so on to the end, in pieces.

        Raises:
            InputError: As `now`.
        """
        lines: dict[str, Line] = {}
        while begin_s <= end_s:
            last = min(end_s, begin_s + (_MOST_POINTS - 1) * step_s)
            limits = {"start": f"{begin_s:.3f}", "end": f"{last:.3f}", "step": f"{step_s:g}"}
            for one in self._ask("query_range", {"query": query, **limits}):
                key = json.dumps(one["metric"], sort_keys=True)
                line = lines.setdefault(key, Line(one["metric"], {}))
                line.values.update({float(at): float(value) for at, value in one["values"]})
            begin_s = last + step_s
        return list(lines.values())

    def _ask(self, what: str, parameters: dict[str, str]) -> Any:
        data = urllib.parse.urlencode(parameters).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{what}", data)  # noqa: S310 - __init__
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                body = answer.read(_LARGEST_BYTES)
        except urllib.error.HTTPError as error:
            raise self._refused(_reason(error.read(1 << 16)) or f"answered {error.code}") from error
        except (OSError, ValueError) as error:
            raise self._refused(f"cannot be reached: {error}") from error
        try:
            tree = json.loads(body)
            return tree["data"]["result"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._refused("does not answer like Prometheus") from error

    def _refused(self, rule: str) -> InputError:
        return InputError([Complaint(self.url, "", rule)])


def _reason(body: bytes) -> str | None:
    """What the server says is wrong, in one line."""
    try:
        found = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return "refuses: " + " ".join(str(found).split())
