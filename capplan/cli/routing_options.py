"""What `capplan profile routing` was asked for, and where its tables go."""

from dataclasses import dataclass
from pathlib import Path

from capplan.cli import acceptance_options, profile_output
from capplan.cli.drafter_spec import check_folder
from capplan.cli.profile_options import LARGEST_SEED, check
from capplan.cli.profile_text import with_renewed
from capplan.errors import Complaint, InputError, gathering
from capplan.files.catalogue import find
from capplan.files.prompts import read_prompts
from capplan.files.reader import read
from capplan.files.writer import write_record, write_text
from capplan.records.profile import Profile
from capplan.records.prompt import Prompt
from capplan.records.routing import Routing

FEWEST_TEXTS = 2
"""One text has nothing to overlap with."""


@dataclass(frozen=True)
class Asked:
    """The command's arguments, checked."""

    checkpoint: Path
    workloads: dict[str, tuple[Prompt, ...]]
    sources: tuple[str, ...]
    """Names of the prompt files, in the same order."""
    max_tokens: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class Destination:
    """Where the tables go, seen to before anything is measured."""

    path: Path | None
    profile: Profile | None = None
    """What stands in the file, where they are put into a profile."""


def asked(
    what: tuple[Path, list[str], list[str]], *, max_tokens: int, temperature: float, seed: int
) -> Asked:
    """Checks arguments and reads the texts.

    Args:
        what: Checkpoint, prompt files and workloads.
        max_tokens: Of an answer; 0 for none.
        temperature: Of answers.
        seed: Of answers and batches.

    Raises:
        InputError: With all that is wrong.
    """
    checkpoint, prompts, workloads = what
    wrong: list[Complaint] = []
    with gathering(wrong):
        check_folder("CHECKPOINT", checkpoint)
    with gathering(wrong):
        check(
            ("--max-tokens", max_tokens, 0, acceptance_options.MOST_TOKENS),
            ("--seed", seed, 0, LARGEST_SEED),
        )
    with gathering(wrong):
        acceptance_options.check_temperature(temperature)
    if len(prompts) != len(workloads) or len(set(workloads)) != len(workloads):
        rule = "needs a name of its own for each --prompts, in the same order"
        wrong.append(Complaint("--workload", "", rule, ", ".join(workloads)))
    texts: dict[str, tuple[Prompt, ...]] = {}
    sources = []
    for name, file in zip(workloads, prompts, strict=False):
        with gathering(wrong):
            path = find("prompts", file)
            sources.append(path.name)
            texts[name] = _texts(path)
    if wrong:
        raise InputError(wrong)
    return Asked(checkpoint, texts, tuple(sources), max_tokens, temperature, seed)


def _texts(path: Path) -> tuple[Prompt, ...]:
    read = read_prompts(path)
    if len(read) < FEWEST_TEXTS:
        rule = f"needs {FEWEST_TEXTS} texts or more"
        raise InputError([Complaint(str(path), "", rule, str(len(read)))])
    return read


def destination(output: Path | None, into: Path | None, *, force: bool) -> Destination:
    """Sees that the tables can go where they are to go.

    Raises:
        InputError: They cannot.
    """
    if output is not None and into is not None:
        raise InputError([Complaint("--into", "", "cannot be used with --output")])
    if into is not None:
        profile = read(into, Profile)
        if profile.routing is not None and not force:
            remedy = "Add --force to replace it."
            raise InputError([Complaint(str(into), "routing", "is there already", None, remedy)])
        return Destination(into, profile)
    if output is not None:
        profile_output.check(output, force=force, own_folder=False)
    return Destination(output)


def write(to: Destination, found: Routing) -> None:
    """Writes the tables, whole or not at all; a profile's other lines stay as they are.

    Raises:
        InputError: The file cannot be written.
    """
    if to.path is None:
        return
    if to.profile is None:
        write_record(to.path, found)
        return
    renewed = to.profile.model_copy(update={"routing": found})
    write_text(to.path, with_renewed(to.path, renewed, "routing"))
