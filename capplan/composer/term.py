"""One addend of a step's time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from capplan.physics.load import Load
from capplan.physics.surface import Array
from capplan.records.caveat import Caveat, Source

Part = Literal[
    "attention",
    "dense",
    "sparse",
    "shared",
    "all_reduce",
    "all_to_all",
    "head",
    "small",
    "fixed",
]


@dataclass(frozen=True)
class Term:
    """An operator with how often a step runs it."""

    part: Part
    what: str
    """As a report names it: `q, k and v projections`."""
    count: float
    """Times a step."""
    at: Callable[[Load], Array]
    """One GPU's time of one run [s], shape of the load; NaN outside the table."""
    sources: tuple[Source, ...]
    error: float = 0.0
    """Relative error of reading the table between its rows, as measured on rows left out."""
    caveats: tuple[Caveat, ...] = ()
    by_context: bool = False
    """Whether the context of the batch changes its time."""
    operators: int = 1
    """Operators that the host launches for one run, where it does not replay a graph."""
