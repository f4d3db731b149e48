"""Prompt files: JSON lines of prompts or conversations, or plain text with a prompt a line."""

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from capplan.errors import Complaint, InputError
from capplan.files.text import read_text
from capplan.records.prompt import Prompt

LIMIT_BYTES: Final = 64 << 20
UNDECODABLE: Final = "\ufffd"
"""What decoders put where bytes were no text."""
MOST_UNDECODABLE: Final = 0.01
"""Share of a prompt's characters that may be undecodable: one byte gone wrong in a long text."""


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Reads a prompt file; `.jsonl` is JSON lines, anything else plain text.

    A JSON line is `{"prompt": "…"}` or `{"messages": [{"role": "user", "content": "…"}]}`; it may
    have an `id`. Empty lines count for nothing.

    Raises:
        InputError: The file cannot be read, holds no prompt, or lines are wrong or no text; all
            at once.
    """
    lines = enumerate(read_text(path, LIMIT_BYTES).splitlines(), start=1)
    filled = [(number, line) for number, line in lines if line.strip()]
    if not filled:
        raise InputError([Complaint(str(path), "", "holds no prompt")])
    prompts: list[Prompt] = []
    complaints: list[Complaint] = []
    for number, line in filled:
        place = f"{path}:{number}"
        try:
            prompt = _prompt(line, json_lines=path.suffix == ".jsonl")
        except ValidationError as error:
            complaints += _told(place, error)
            continue
        if (share := _undecodable(prompt)) > MOST_UNDECODABLE:
            rule = f"at most {MOST_UNDECODABLE:.0%} of its characters may be undecodable"
            remedy = "Acceptance and routing need real text: random tokens show neither."
            complaints.append(Complaint(place, "", rule, f"{share:.0%}", remedy))
        prompts.append(prompt)
    if complaints:
        raise InputError(complaints)
    return tuple(prompts)


def _prompt(line: str, *, json_lines: bool) -> Prompt:
    if json_lines:
        return Prompt.model_validate_json(line, strict=True)
    return Prompt(prompt=line.strip())


def _told(place: str, error: ValidationError) -> list[Complaint]:
    return [
        Complaint(place, ".".join(map(str, detail["loc"])), detail["msg"])
        for detail in error.errors(include_url=False)
    ]


def _undecodable(prompt: Prompt) -> float:
    text = "".join(message.content for message in prompt.conversation)
    return text.count(UNDECODABLE) / len(text)
