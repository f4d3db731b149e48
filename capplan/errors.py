"""What can go wrong for a user, as data: complaints about inputs, and exit codes.

Every complaint says where it is, which rule is broken, what was found, and what to do. They are
collected, so that one run shows all that is wrong. Anything that is not a `CapplanError` is a
bug in capplan and keeps its traceback.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Complaint:
    """One broken rule.

    `place` is `file:line:column` or as much of it as is known; `key` is the dotted path inside
    the file; `found` is the offending value as text, None where there is none to show.
    """

    place: str
    key: str
    rule: str
    found: str | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.place, self.key, self.rule) if part)
        if self.found is not None:
            text += f", found {self.found}"
        return text if self.remedy is None else f"{text}\n    {self.remedy}"


class CapplanError(Exception):
    """Base of every error that a user can mend; `cli` is the only place that catches it."""

    exit_code: ClassVar[int] = 1


class InputError(CapplanError):
    """Something in a file or an argument is wrong."""

    def __init__(self, complaints: Sequence[Complaint]) -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(str(complaint) for complaint in self.complaints))


@contextmanager
def gathering(found: list[Complaint]) -> Iterator[None]:
    """Keeps an InputError's complaints for later, so that the next check runs too."""
    try:
        yield
    except InputError as error:
        found.extend(error.complaints)


class MeasureError(CapplanError):
    """A measurement cannot be made on this machine."""


class InfeasibleError(CapplanError):
    """No fleet of any size keeps the objectives: says what binds and the nearest feasible value."""

    exit_code: ClassVar[int] = 3
