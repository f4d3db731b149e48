"""What commands that simulate share: options, the stage, and a sign of life."""

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capplan.planner.trial import Stage

DEFAULT_SEED = 1


class Pools(enum.StrEnum):
    """Whether classes share replicas."""

    auto = "auto"
    shared = "shared"
    separate = "separate"


class Prefill(enum.StrEnum):
    """Where prompts are processed."""

    beside = "beside"
    dedicated = "dedicated"
    auto = "auto"


def stage(seed: int) -> "Stage | None":
    """What plans are simulated with; None without numba: plain Python takes too long."""
    from capplan.planner.trial import Stage
    from capplan.simulator.arrivals import poisson
    from capplan.simulator.replica import compiled, simulate
    from capplan.simulator.split import simulate_split, starts_s

    return Stage(simulate, simulate_split, starts_s, poisson, seed) if compiled() else None


def unsimulated(*, screen: bool) -> str:
    """Why plans are not simulated, where they are not."""
    if screen:
        return "--screen"
    if find_spec("numba") is None:
        return 'numba is not installed: pip install "capplan[fast]"'
    return "NUMBA_DISABLE_JIT switches numba off"


@contextmanager
def working(what: str) -> Iterator[None]:
    """A word on stderr, where that is a terminal, for as long as something takes."""
    from rich.console import Console

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(what):
        yield
