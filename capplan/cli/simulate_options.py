"""Options of `capplan simulate`, read into what the simulation takes."""

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capplan.physics.engine import Engine, Outcome, Requests
    from capplan.planner.trial import Arrivals, Stage

_MOST_IN_FLIGHT = 10_000


class Router(enum.StrEnum):
    """How requests are given to replicas."""

    round_robin = "round-robin"
    least_loaded = "least-loaded"


@dataclass(frozen=True)
class Setting:
    """How requests come and where they go."""

    arrivals: "Arrivals"
    replicas: int
    router: Router
    seed: int

    def simulate(self, engine: "Engine", requests: "Requests", rate_per_s: float) -> "Outcome":
        """Runs requests at a rate a replica [1/s]."""
        from capplan.simulator.fleet import simulate_fleet

        total = rate_per_s * self.replicas
        return simulate_fleet(engine, requests, total, self.replicas, self.router.value)

    @property
    def stage(self) -> "Stage":
        """What the planner runs trials with."""
        from capplan.planner.trial import Stage
        from capplan.simulator.split import simulate_split, starts_s

        return Stage(self.simulate, simulate_split, starts_s, self.arrivals, self.seed)


def refuse_beside_plan(**given: object) -> None:
    """A kept plan says itself what these options would.

    Raises:
        InputError: One of them is given.
    """
    from capplan.errors import Complaint, InputError

    rule = "is for forecasts: a plan is simulated as it is, at its own peak"
    complaints = [
        Complaint(f"--{name.replace('_', '-')}", "", rule)
        for name, value in given.items()
        if value is not None
    ]
    if complaints:
        raise InputError(complaints)


def check_split(setting: Setting, *, split: bool) -> None:
    """Engines for prompts of their own feed one replica, and no router stands between.

    Raises:
        InputError: Several replicas are asked for.
    """
    from capplan.errors import Complaint, InputError

    if split and setting.replicas > 1:
        rule = "must be 1 where prompts have engines of their own"
        raise InputError([Complaint("--replicas", "", rule, str(setting.replicas))])


def arrivals(text: str) -> "Arrivals":
    """Draws of arrival times.

    Raises:
        InputError: It is none of that kind.
    """
    from capplan.errors import Complaint, InputError
    from capplan.simulator.arrivals import gamma, poisson

    if text == "poisson":
        return poisson
    kind, _, spread = text.partition(":")
    try:
        cv = float(spread)
    except ValueError:
        cv = 0.0
    if kind != "gamma" or not 0 < cv <= 20:
        rule = "must be poisson, or gamma:CV with a CV above 0 and at most 20"
        raise InputError([Complaint("--arrivals", "", rule, repr(text))])
    return lambda count, rng: gamma(count, cv, rng)


def loads(text: str) -> tuple[float, ...]:
    """Parts of the predicted capacity.

    Raises:
        InputError: It is none of that kind.
    """
    from capplan.errors import Complaint, InputError

    found, complaints = [], []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = 0.0
        if 0 < value <= 2:
            found.append(value)
        else:
            rule = "needs numbers above 0 and at most 2, comma-separated"
            complaints.append(Complaint("--load", "", rule, repr(part)))
    if complaints:
        raise InputError(complaints)
    return tuple(found)


def counts(text: str | None) -> tuple[int, ...]:
    """Requests in flight; none where nothing is said.

    Raises:
        InputError: It is none of that kind.
    """
    from capplan.errors import Complaint, InputError

    if text is None:
        return ()
    found, complaints = [], []
    for part in text.split(","):
        if part.strip().isascii() and part.strip().isdigit() and 0 < int(part) <= _MOST_IN_FLIGHT:
            found.append(int(part))
        else:
            rule = f"needs whole numbers from 1 to {_MOST_IN_FLIGHT:,}, comma-separated"
            complaints.append(Complaint("--in-flight", "", rule, repr(part)))
    if complaints:
        raise InputError(complaints)
    return tuple(found)
