"""Where a number comes from, and what to mind about it, as data that travels with it."""

import datetime as dt
from typing import Literal

from capplan.records.base import Record

OriginKind = Literal["measured", "imported", "composed", "estimated", "assumed"]
"""measured: on the machine named; imported: from another program's measurement; composed: summed
from published measurements of parts; estimated: from a formula; assumed: nobody measured it."""


class Source(Record):
    """One place a number was taken from."""

    what: str
    """Which numbers."""
    where: str
    """Address, paper with table or equation, or file."""
    licence: str | None = None
    """Licence of the data, where data was taken."""


class Origin(Record):
    """How the numbers beside it came about."""

    kind: OriginKind
    date: dt.date | None = None
    machine: str | None = None
    """Device, driver and host as far as they matter for repeating it."""
    versions: dict[str, str] = {}
    """Programs that took part, with their versions."""
    sources: tuple[Source, ...] = ()
    note: str | None = None


class Caveat(Record):
    """A warning that is printed with every plan that rests on it."""

    about: str
    """The quantity it concerns."""
    text: str
