"""What `capplan profile acceptance` was asked for, checked before anything is loaded."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capplan.cli.profile_options import LARGEST_SEED, check
from capplan.errors import Complaint, InputError
from capplan.files.catalogue import find
from capplan.files.prompts import read_prompts
from capplan.importers.hugging_face.drafter import is_drafter
from capplan.records.acceptance import DrafterKind
from capplan.records.prompt import Prompt

FEWEST_PROMPTS: Final = 2
"""One prompt has no spread, and no interval."""
MOST_TOKENS: Final = 1_000_000
HOTTEST: Final = 100.0
FORMS: Final = "the folder of a small model's checkpoint, ngram, ngram:2..4, layers:N or int8"
LONGEST_NGRAM: Final = 32


@dataclass(frozen=True)
class Ngram:
    """Looks the text's last tokens up in the text."""

    shortest: int
    longest: int
    kind: DrafterKind = "ngram"

    @property
    def slug(self) -> str:
        """What it is called where nothing else is said."""
        return f"ngram-{self.shortest}-{self.longest}"


@dataclass(frozen=True)
class FirstLayers:
    """The target's first layers."""

    layers: int
    kind: DrafterKind = "autoregressive"

    @property
    def slug(self) -> str:
        """What it is called where nothing else is said."""
        return f"layers-{self.layers}"


@dataclass(frozen=True)
class Int8:
    """The target in INT8."""

    kind: DrafterKind = "autoregressive"
    slug: str = "int8"


@dataclass(frozen=True)
class Folder:
    """A small model."""

    path: Path
    kind: DrafterKind = "autoregressive"

    @property
    def slug(self) -> str:
        """What it is called where nothing else is said."""
        return self.path.resolve().name.lower()


DrafterSpec = Ngram | FirstLayers | Int8 | Folder


@dataclass(frozen=True)
class Asked:
    """The command's arguments, checked."""

    target: Path
    drafter: DrafterSpec
    prompts: tuple[Prompt, ...]
    source: str
    """Name of the prompt file, without its folder."""
    workload: str
    draft_tokens: int
    temperature: float
    max_tokens: int
    seed: int


def asked(what: tuple[Path, str, str, str], how: tuple[int, float, int, int]) -> Asked:
    """Checks arguments and reads the prompts.

    Args:
        what: Target, drafter, prompts and workload.
        how: draft_tokens, temperature, max_tokens and seed.

    Raises:
        InputError: Something of it is wrong.
    """
    target, drafter, prompts, workload = what
    draft_tokens, temperature, max_tokens, seed = how
    check(
        ("--draft-tokens", draft_tokens, 1, 64),
        ("--max-tokens", max_tokens, 2, MOST_TOKENS),
        ("--seed", seed, 0, LARGEST_SEED),
    )
    check_temperature(temperature)
    check_folder("TARGET", target)
    path = find("prompts", prompts)
    read = read_prompts(path)
    if len(read) < FEWEST_PROMPTS:
        rule = f"needs {FEWEST_PROMPTS} prompts or more: requests are what is sampled"
        raise InputError([Complaint(str(path), "", rule, str(len(read)))])
    return Asked(
        target=target,
        drafter=drafter_of(drafter),
        prompts=read,
        source=path.name,
        workload=workload,
        draft_tokens=draft_tokens,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=seed,
    )


def check_temperature(temperature: float) -> None:
    """Holds a temperature to what can be sampled at.

    Raises:
        InputError: It cannot.
    """
    if not (math.isfinite(temperature) and 0 <= temperature <= HOTTEST):
        rule = f"needs a number from 0 to {HOTTEST:g}"
        raise InputError([Complaint("--temperature", "", rule, str(temperature))])


def check_folder(place: str, folder: Path) -> None:
    """Sees that a checkpoint may be in a folder.

    Raises:
        InputError: There is no such folder, or no configuration in it.
    """
    if not (folder / "config.json").is_file():
        rule = "is no folder with a config.json" if folder.is_dir() else "is no folder"
        remedy = "Name the local folder of a checkpoint; nothing is downloaded."
        raise InputError([Complaint(place, "", rule, str(folder), remedy)])


def drafter_of(text: str) -> DrafterSpec:
    """The drafter that an argument means.

    Raises:
        InputError: None, or one that cannot be run without the engine it was made for.
    """
    if text == "int8":
        return Int8()
    if found := re.fullmatch(r"layers:([1-9][0-9]{0,3})", text):
        return FirstLayers(int(found[1]))
    if found := re.fullmatch(r"ngram(?::([0-9]+)(?:\.\.([0-9]+))?)?", text):
        return _ngram(text, found[1], found[2])
    folder = Path(text)
    if not folder.is_dir():
        rule = "is no drafter that capplan can run"
        raise InputError([Complaint("DRAFTER", "", rule, text, f"Needs {FORMS}.")])
    check_folder("DRAFTER", folder)
    _check_stands_alone(folder)
    return Folder(folder)


def _ngram(text: str, shortest: str | None, longest: str | None) -> Ngram:
    first = 2 if shortest is None else int(shortest)
    last = int(longest) if longest is not None else 4 if shortest is None else first
    if not 1 <= first <= last <= LONGEST_NGRAM:
        rule = f"needs lengths from 1 to {LONGEST_NGRAM}, the shorter first, as in ngram:2..4"
        raise InputError([Complaint("DRAFTER", "", rule, text)])
    return Ngram(first, last)


def _check_stands_alone(folder: Path) -> None:
    """Refuses heads: they need the target's hidden states, which only engines hand them."""
    path = folder / "config.json"
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError([Complaint(str(path), "", f"cannot be read: {error}")]) from error
    if not isinstance(tree, dict):
        raise InputError([Complaint(str(path), "", "needs a mapping")])
    if is_drafter(tree) or "speculators_model_type" in tree:
        named = tree.get("architectures") or [tree.get("speculators_model_type", "a head")]
        rule = "is a head that drafts from the target's hidden states, which capplan does not run"
        remedy = (
            "Serve it, read the engine's counters of accepted drafts by position, and write them "
            "under the drafter's acceptance; here a model of its own is needed."
        )
        raise InputError([Complaint("DRAFTER", "", rule, str(named[0]), remedy)])
