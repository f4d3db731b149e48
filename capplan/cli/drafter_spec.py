"""What an argument says shall draft, before any checkpoint is loaded."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capplan.errors import Complaint, InputError
from capplan.importers.hugging_face.drafter import is_drafter
from capplan.records.acceptance import DrafterKind

FORMS: Final = "the folder of a small model's checkpoint, ngram, ngram:2..4, layers:N, int8 or mtp"
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
class Mtp:
    """The target's own layers for multi-token prediction."""

    kind: DrafterKind = "autoregressive"
    slug: str = "mtp"


@dataclass(frozen=True)
class Folder:
    """A small model."""

    path: Path
    kind: DrafterKind = "autoregressive"

    @property
    def slug(self) -> str:
        """What it is called where nothing else is said."""
        return self.path.resolve().name.lower()


DrafterSpec = Ngram | FirstLayers | Int8 | Mtp | Folder


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
    if text in ("int8", "mtp"):
        return Int8() if text == "int8" else Mtp()
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
