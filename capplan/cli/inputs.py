"""What a command is given: files found by name, read, and complaints with their lines."""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from capplan.errors import Complaint, InputError
    from capplan.files.catalogue import Kind
    from capplan.records.fleet import Fleet
    from capplan.records.forecast import Forecast
    from capplan.records.profile import Profile

N = TypeVar("N", "Fleet", "Forecast", "Profile")

DEFAULT_FLEET = "dgx-h200"
_POLICY = re.compile(r"plain|always(:[1-9][0-9]?)?|by-load")


class Format(enum.StrEnum):
    """Forms of the result on stdout."""

    table = "table"
    json = "json"


@dataclass
class Inputs:
    """What was read, and the file that each thing stands in, by the name complaints give it."""

    fleet: "Fleet"
    forecasts: list["Forecast"]
    profiles: list["Profile"]
    paths: dict[str, Path]

    def profiles_of(self, forecast: "Forecast") -> list["Profile"]:
        """Profiles to plan a forecast with: those given for its model, or all that are known.

        A single forecast takes whatever was given, so that a wrong model is said, not skipped.
        """
        alone = len(self.forecasts) == 1
        own = [p for p in self.profiles if alone or p.model.name == forecast.model]
        return own or _known_profiles(forecast, self)


def policies(text: str | None) -> tuple[str, ...] | None:
    """The policies that a comma-separated list names; None for none.

    Raises:
        InputError: One of them does not exist.
    """
    from capplan.errors import Complaint, InputError

    if text is None:
        return None
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    wrong = [policy for policy in found if not _POLICY.fullmatch(policy)]
    if wrong:
        rule = "each must be plain, always, always:N or by-load"
        raise InputError([Complaint("--policy", "", rule, repr(policy)) for policy in wrong])
    return found


def read_all(fleet: str, forecasts: list[str], profiles: list[str]) -> Inputs:
    """All files that are named, or every complaint about any of them."""
    from capplan.errors import InputError
    from capplan.files.catalogue import find
    from capplan.files.reader import read, read_forecast
    from capplan.records.fleet import Fleet
    from capplan.records.profile import Profile

    complaints: list[Complaint] = []
    paths: dict[str, Path] = {}

    def attempt(reading: Callable[[Path], N], kind: "Kind", name: str) -> list[N]:
        try:
            path = find(kind, name)
            record = reading(path)
        except InputError as error:
            complaints.extend(error.complaints)
            return []
        paths[f"{kind.removesuffix('s')} {record.name}"] = path
        return [record]

    hardware = attempt(lambda path: read(path, Fleet), "fleets", fleet)
    demands = [d for name in forecasts for d in attempt(read_forecast, "forecasts", name)]
    measured = [
        m for name in profiles for m in attempt(lambda path: read(path, Profile), "profiles", name)
    ]
    if complaints:
        raise InputError(complaints)
    return Inputs(hardware[0], demands, measured, paths)


def _known_profiles(forecast: "Forecast", inputs: Inputs) -> list["Profile"]:
    """Every own or shipped profile of the model whose GPU stands in the fleet."""
    from capplan.errors import Complaint, InputError
    from capplan.files.catalogue import names, profiles_for
    from capplan.files.reader import read
    from capplan.records.profile import Profile

    held = {node.gpu for node in inputs.fleet.nodes.values()}
    found = [(path, read(path, Profile)) for path in profiles_for(forecast.model)]
    usable = [(path, profile) for path, profile in found if profile.deployment.gpu in held]
    if not usable:
        measured = ", ".join(sorted({profile.deployment.gpu for _, profile in found}))
        raise InputError(
            [
                Complaint(
                    place=f"forecast {forecast.name}",
                    key="model",
                    rule=f"needs a profile of this model on {', '.join(sorted(held))}",
                    found=f"{forecast.model}, profiled on {measured or 'nothing'}",
                    remedy=f"known profiles: {', '.join(names('profiles'))}; "
                    "name one with --profile, compose one with --on, or measure with "
                    "capplan profile",
                )
            ]
        )
    inputs.paths.update({f"profile {profile.name}": path for path, profile in usable})
    return [profile for _, profile in usable]


def located(error: "InputError", paths: dict[str, Path]) -> "InputError":
    """Complaints of the planner, with the line of the file that each is about."""
    from dataclasses import replace

    from capplan.errors import InputError
    from capplan.files.document import read_document

    located = []
    for complaint in error.complaints:
        path = paths.get(complaint.place)
        # A pipe has been read to its end: it keeps the name alone.
        if path is not None and path.is_file():
            keys = tuple(int(k) if k.isdigit() else k for k in complaint.key.split("."))
            located.append(replace(complaint, place=read_document(path).place(keys)))
        else:
            located.append(complaint)
    return InputError(located)
