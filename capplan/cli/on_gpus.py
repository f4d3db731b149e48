"""What `capplan plan` is asked to serve on: options that go together, and the fleet they mean."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capplan.cli.inputs import DEFAULT_FLEET

if TYPE_CHECKING:
    from capplan.cli.compose_run import Choice


@dataclass(frozen=True)
class Served:
    """What --on and --model ask for; nothing where neither is given."""

    choice: "Choice | None"
    model: str | None


def asked_for(
    on: str | None, model: str | None, tp: int | None, fleet: str | None, profile: list[str] | None
) -> Served:
    """What the options ask for.

    Raises:
        InputError: They do not go together.
    """
    from capplan.errors import Complaint, InputError

    if on is None:
        asked = (("--model", model), ("--tp", tp))
        remedy = "name GPUs with --on, as h200-sxm:8"
        missing = [
            Complaint(option, "", "needs --on", str(value), remedy)
            for option, value in asked
            if value is not None
        ]
        if missing:
            raise InputError(missing)
        return Served(None, None)
    if profile:
        rule = "finds or composes a profile, so that none can be named beside it"
        raise InputError([Complaint("--on", "", rule, on, "leave out --profile or --on")])
    from capplan.cli.compose_run import Choice

    return Served(Choice(on=on, fleet=fleet, tp=tp), model)


def fleet_of(served: Served, fleet: str | None) -> str:
    """The fleet that was named, or the one that has the GPU, or the usual one."""
    if served.choice is None or fleet is not None:
        return fleet or DEFAULT_FLEET
    from capplan.cli.hardware import hardware

    return hardware(served.choice.on, None).fleet.name
