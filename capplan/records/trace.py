"""What was asked of a service: requests one by one, or counted. Columns, for there are millions.

Prompts and answers never enter: only when a request came, and how many tokens it had.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capplan.records.history import FileRead

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Column = NDArray[Any]
"""Of either."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests in order of arrival; every column has the shape (requests,)."""

    arrival_s: Floats
    """Since 1970-01-01T00:00Z where `dated`, else since a start that nobody wrote down. [s]"""
    prompt_tokens: Floats
    output_tokens: Floats
    kind: Ints
    """Which of `kinds` a request is of."""
    kinds: tuple[str, ...]
    dated: bool
    cached_tokens: Floats | None = None
    """Part of the prompt that was found in a cache."""
    prefix: Ints | None = None
    """Requests that begin alike share a number."""

    def __len__(self) -> int:
        return len(self.arrival_s)


@dataclass(frozen=True, eq=False)
class Sample:
    """A distribution of token counts as weighted values, both of the shape (values,)."""

    tokens: Floats
    weight: Floats
    mean_tokens: float | None = None
    """Where it is known better than the values tell, which stand for a histogram's buckets."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of the requests of one kind besides their rate."""

    prompt: Sample
    output: Sample
    correlation: float | None = None
    """Spearman's, of prompt and output; None where they were not seen together."""
    prefix_reuse: float | None = None
    """Part of the prompt tokens found in a cache."""
    count: float = 0.0
    """Requests that the lengths were taken from."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Requests counted by interval, from monitoring or published rates."""

    start_s: float
    """As `Trace.arrival_s`. [s]"""
    step_s: float
    rate_per_s: Floats
    """Shape (kinds, intervals); nan where nobody looked. [1/s]"""
    kinds: tuple[str, ...]
    dated: bool
    seen: tuple[Seen | None, ...]
    """One a kind; None where the source counts requests without saying how long they were."""


@dataclass(frozen=True)
class Reading:
    """The history of a service and where it comes from: requests, rates, or rates beside requests.

    Where both are there the rates are the history, and the requests tell how long they are.
    """

    requests: Trace | None
    rates: Counted | None
    files: tuple[FileRead, ...]
    caveats: tuple[str, ...]
