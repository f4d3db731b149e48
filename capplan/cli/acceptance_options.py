"""What `capplan profile acceptance` was asked for, checked before anything is loaded."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capplan.cli.drafter_spec import DrafterSpec, check_folder, drafter_of
from capplan.cli.profile_options import LARGEST_SEED, check
from capplan.errors import Complaint, InputError, gathering
from capplan.files.catalogue import find
from capplan.files.prompts import read_prompts
from capplan.records.prompt import Prompt

FEWEST_PROMPTS: Final = 2
"""One prompt has no spread, and no interval."""
MOST_TOKENS: Final = 1_000_000
HOTTEST: Final = 100.0


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
        InputError: With all that is wrong.
    """
    target, drafter, prompts, workload = what
    draft_tokens, temperature, max_tokens, seed = how
    wrong: list[Complaint] = []
    with gathering(wrong):
        check_folder("TARGET", target)
    with gathering(wrong):
        spec = drafter_of(drafter)
    with gathering(wrong):
        path = find("prompts", prompts)
        read = _prompts(path)
    with gathering(wrong):
        check(
            ("--draft-tokens", draft_tokens, 1, 64),
            ("--max-tokens", max_tokens, 2, MOST_TOKENS),
            ("--seed", seed, 0, LARGEST_SEED),
        )
    with gathering(wrong):
        check_temperature(temperature)
    if wrong:
        raise InputError(wrong)
    return Asked(
        target=target,
        drafter=spec,
        prompts=read,
        source=path.name,
        workload=workload,
        draft_tokens=draft_tokens,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=seed,
    )


def _prompts(path: Path) -> tuple[Prompt, ...]:
    read = read_prompts(path)
    if len(read) < FEWEST_PROMPTS:
        rule = f"needs {FEWEST_PROMPTS} prompts or more: requests are what is sampled"
        raise InputError([Complaint(str(path), "", rule, str(len(read)))])
    return read


def check_temperature(temperature: float) -> None:
    """Holds a temperature to what can be sampled at.

    Raises:
        InputError: It cannot.
    """
    if not (math.isfinite(temperature) and 0 <= temperature <= HOTTEST):
        rule = f"needs a number from 0 to {HOTTEST:g}"
        raise InputError([Complaint("--temperature", "", rule, str(temperature))])
