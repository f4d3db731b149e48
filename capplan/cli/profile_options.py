"""What `capplan profile` was asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from capplan.errors import Complaint, InputError
from capplan.files.catalogue import find
from capplan.files.document import read_document
from capplan.files.reader import read
from capplan.importers import hf_config
from capplan.records.architecture import Architecture

LARGEST: Final = 10_000_000
RUNS: Final = 20
QUICK_RUNS: Final = 6


@dataclass(frozen=True)
class Asked:
    """The command's options; None where the device decides."""

    output: Path | None
    device: Literal["cuda", "cpu"] | None
    precision: Literal["fp32", "bf16"] | None
    layers: int | None
    batches: tuple[int, ...] | None
    contexts: tuple[int, ...] | None
    draft_tokens: int | None
    max_batched_tokens: int | None
    quick: bool
    runs: int
    idle_w: float | None
    seed: int


def architecture(model: str) -> Architecture:
    """The model that an argument means.

    Raises:
        InputError: If there is no such model, or its file is wrong.
    """
    path = find("models", model)
    if path.suffix != ".json":
        return read(path, Architecture)
    document = read_document(path)
    return hf_config.architecture(document.tree, _name(path), document.place)


def whole_numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    """`1,2,4` as numbers, sorted; None where the option is not given.

    Raises:
        InputError: If an entry is no whole number from 1.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(_is_count(part) for part in parts):
        rule = f"needs whole numbers from 1 to {LARGEST} with commas between them, as in 1,2,4"
        raise InputError([Complaint(option, "", rule, repr(text))])
    return tuple(sorted({int(part) for part in parts}))


def layers(text: str) -> int | None:
    """A number of layers of each kind; None for `auto`.

    Raises:
        InputError: If it is neither.
    """
    if text == "auto":
        return None
    if not _is_count(text):
        raise InputError([Complaint("--layers", "", "needs auto or a whole number", repr(text))])
    return int(text)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 8 and 1 <= int(text) <= LARGEST


def _name(path: Path) -> str:
    """A configuration is called after its folder, as in a checkpoint, unless it has a name."""
    own = path.stem if path.stem != "config" else path.absolute().parent.name
    return own.lower()
