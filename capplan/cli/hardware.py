"""GPUs that an option names, and the fleet that describes them."""

import re
from dataclasses import dataclass
from typing import Final

from capplan.cli.inputs import DEFAULT_FLEET
from capplan.errors import Complaint, InputError
from capplan.files.catalogue import find, names
from capplan.files.reader import read
from capplan.records.fleet import Fleet, Gpu

MOST_GPUS: Final = 4096
_GPUS: Final = re.compile(r"(.+):([1-9][0-9]{0,3})")


@dataclass(frozen=True)
class Hardware:
    """The GPUs of one replica."""

    name: str
    gpus: int
    fleet: Fleet

    @property
    def gpu(self) -> Gpu:
        """What the fleet says of one."""
        return self.fleet.gpus[self.name]


def hardware(on: str, fleet_name: str | None) -> Hardware:
    """The GPUs that `--on` means.

    Args:
        on: Such as h200-sxm:8.
        fleet_name: Where they are described; None for the first known fleet that has them, the
            usual one before others.

    Raises:
        InputError: It is written otherwise, or no fleet has such a GPU.
    """
    found = _GPUS.fullmatch(on)
    if found is None or int(found[2]) > MOST_GPUS:
        rule = f"needs a kind of GPU and a number up to {MOST_GPUS}, as h200-sxm:8"
        raise InputError([Complaint("--on", "", rule, repr(on))])
    fleets = [read(find("fleets", name), Fleet) for name in _searched(fleet_name)]
    for fleet in fleets:
        if found[1] in fleet.gpus:
            return Hardware(found[1], int(found[2]), fleet)
    known = ", ".join(dict.fromkeys(gpu for fleet in fleets for gpu in fleet.gpus))
    where = "any known fleet" if fleet_name is None else f"fleet {fleets[0].name}"
    remedy = f"known: {known}; other GPUs: name their file with --fleet"
    raise InputError([Complaint("--on", "", f"is not a GPU of {where}", found[1], remedy)])


def _searched(fleet_name: str | None) -> list[str]:
    if fleet_name is not None:
        return [fleet_name]
    return [DEFAULT_FLEET, *(name for name in names("fleets") if name != DEFAULT_FLEET)]
