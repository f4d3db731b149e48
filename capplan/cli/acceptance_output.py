"""Where a measured acceptance goes: a file of its own, or a drafter of a profile."""

from dataclasses import dataclass
from pathlib import Path

import typer

from capplan.cli import profile_output
from capplan.cli.acceptance_options import Asked
from capplan.cli.profile_text import with_renewed
from capplan.errors import Complaint, InputError
from capplan.files.reader import read
from capplan.files.writer import write_record, write_text
from capplan.records.acceptance import MeasuredAcceptance
from capplan.records.profile import Profile


@dataclass(frozen=True)
class Destination:
    """Where the table goes, seen to before anything is measured."""

    drafter: str
    path: Path | None
    profile: Profile | None = None
    """What stands in the file, where the table is added to a profile."""


def destination(
    output: Path | None, into: Path | None, drafter: str | None, asked: Asked, *, force: bool
) -> Destination:
    """Sees that the table can go where it is to go.

    Raises:
        InputError: It cannot.
    """
    if output is not None and into is not None:
        rule = "cannot be used with --output"
        raise InputError([Complaint("--into", "", rule)])
    if into is not None:
        profile = read(into, Profile)
        name = _drafter(profile, into, drafter, asked)
        _check_free(profile, into, name, asked, force=force)
        return Destination(name, into, profile)
    if output is not None:
        profile_output.check(output, force=force, own_folder=False)
    return Destination(drafter or asked.drafter.slug, output)


def write(to: Destination, found: MeasuredAcceptance, asked: Asked) -> None:
    """Writes the table, whole or not at all; a profile's other lines stay as people have them.

    Raises:
        InputError: The file cannot be written.
    """
    if to.path is None:
        return
    if to.profile is None:
        write_record(to.path, found)
        return
    served = to.profile.model.name
    if served != asked.target.resolve().name.lower():
        typer.echo(
            f"{to.path}: is a profile of {served}; acceptance was measured with "
            f"{asked.target.resolve().name}: see that they are the same model",
            err=True,
        )
    extended = _extended(to.profile, to.drafter, found)
    write_text(to.path, with_renewed(to.path, extended, "drafters"))


def _drafter(profile: Profile, path: Path, name: str | None, asked: Asked) -> str:
    kind = asked.drafter.kind
    fitting = [known for known, drafter in profile.drafters.items() if drafter.kind == kind]
    if name is None and len(fitting) == 1:
        return fitting[0]
    if name in fitting:
        return name
    listed = ", ".join(f"{known} ({d.kind})" for known, d in profile.drafters.items()) or "none"
    rule = f"needs a drafter of kind {kind}; it has {listed}"
    remedy = (
        "Name one with --drafter, or add the drafter with its memory and drafting times first: "
        "those are not measured here."
    )
    raise InputError([Complaint(str(path), "drafters", rule, name, remedy)])


def _check_free(profile: Profile, path: Path, name: str, asked: Asked, *, force: bool) -> None:
    if asked.workload in profile.drafters[name].acceptance and not force:
        key, rule = f"drafters.{name}.acceptance", "has that workload already"
        remedy = "Add --force to replace it, or name another --workload."
        raise InputError([Complaint(str(path), key, rule, asked.workload, remedy)])


def _extended(profile: Profile, name: str, found: MeasuredAcceptance) -> Profile:
    drafter = profile.drafters[name]
    tables = drafter.acceptance | found.acceptance
    drafters = profile.drafters | {name: drafter.model_copy(update={"acceptance": tables})}
    return profile.model_copy(update={"drafters": drafters})
