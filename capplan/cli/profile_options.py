"""What `capplan profile` was asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from capplan.errors import Complaint, InputError

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


def _is_count(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 8 and 1 <= int(text) <= most
