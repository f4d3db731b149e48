"""What `capplan profile` was asked for."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from capplan.errors import Complaint, InputError
from capplan.files.catalogue import find
from capplan.files.document import read_document
from capplan.files.reader import read
from capplan.importers.hugging_face import config
from capplan.importers.hugging_face.stored import Quantization
from capplan.records.architecture import Architecture

RUNS: Final = 20
QUICK_RUNS: Final = 6
MOST_RUNS: Final = 10_000
MOST_LAYERS: Final = 10_000
MOST_BATCHED_TOKENS: Final = 1_000_000
LARGEST_BATCH: Final = 1_000_000
LARGEST_CONTEXT_TOKENS: Final = 10_000_000
LARGEST_SEED: Final = 2**63 - 1
"""What torch's generators take."""


@dataclass(frozen=True)
class Asked:
    """The command's options; None where the device decides."""

    output: Path | None
    force: bool
    device: Literal["cuda", "cpu"] | None
    precision: Literal["fp32", "bf16"] | None
    layers: int | None
    batches: tuple[int, ...] | None
    contexts: tuple[int, ...] | None
    draft_tokens: int | None
    max_batched_tokens: int | None
    quick: bool
    runs: int
    seed: int


def architecture(model: str) -> Architecture:
    """The model that an argument means.

    Raises:
        InputError: If there is no such model, or its file is wrong.
    """
    path = _file(model)
    if path.suffix != ".json":
        return read(path, Architecture)
    document = read_document(path)
    return config.architecture(document.tree, _name(path), document.place, _quantization(path))


def check(*bounded: tuple[str, int | None, int, int]) -> None:
    """Holds numbers to their bounds, before anything is measured.

    Args:
        bounded: Option, its value, least and largest value; None where it is not given.

    Raises:
        InputError: With all options that are out of bounds.
    """
    wrong = [
        Complaint(option, "", f"needs a whole number from {least} to {most}", str(value))
        for option, value, least, most in bounded
        if value is not None and not least <= value <= most
    ]
    if wrong:
        raise InputError(wrong)


def whole_numbers(option: str, text: str | None, most: int) -> tuple[int, ...] | None:
    """`1,2,4` as numbers, sorted; None where the option is not given.

    Raises:
        InputError: If an entry is no whole number from 1 to `most`.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(_is_count(part, most) for part in parts):
        rule = f"needs whole numbers from 1 to {most} with commas between them, as in 1,2,4"
        raise InputError([Complaint(option, "", rule, repr(text))])
    return tuple(sorted({int(part) for part in parts}))


def layers(text: str) -> int | None:
    """A number of layers of each kind; None for `auto`.

    Raises:
        InputError: If it is neither.
    """
    if text == "auto":
        return None
    if not _is_count(text, MOST_LAYERS):
        rule = f"needs auto or a whole number, at least 1 and at most {MOST_LAYERS}"
        raise InputError([Complaint("--layers", "", rule, repr(text))])
    return int(text)


def _quantization(path: Path) -> Quantization | None:
    """What stands beside a configuration where modelopt has narrowed the weights."""
    beside = path.with_name("hf_quant_config.json")
    if path.name != "config.json" or not beside.is_file():
        return None
    document = read_document(beside)
    return Quantization(document.tree, document.place)


def _file(model: str) -> Path:
    try:
        return find("models", model)
    except InputError as error:
        inside = Path(model, "config.json")
        if not inside.is_file():
            raise
        remedy = f"For the model inside give {inside}."
        raise InputError([replace(c, remedy=remedy) for c in error.complaints]) from error


def _is_count(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 8 and 1 <= int(text) <= most


def _name(path: Path) -> str:
    """A configuration is called after its folder, as in a checkpoint, unless it has a name."""
    own = path.stem if path.stem != "config" else path.absolute().parent.name
    return own.lower()
