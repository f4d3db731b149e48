"""Checkpoints on the disk, as transformers loads them: a model, its tokenizer, its chat template.

Nothing is downloaded and no code that comes with a checkpoint is run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from capplan.errors import Complaint, InputError
from capplan.records.prompt import Message

LOADING_ERRORS = (OSError, ValueError, KeyError, RuntimeError, ImportError)
"""What transformers raises where a folder does not hold what it should."""


@dataclass(frozen=True)
class Checkpoint:
    """A causal language model with its tokenizer."""

    name: str
    model: Any
    tokenizer: Any

    @property
    def vocabulary(self) -> int:
        """Tokens that have a text; a model's head may be padded beyond them."""
        return min(len(self.tokenizer), int(self.model.config.get_text_config().vocab_size))

    @property
    def templated(self) -> bool:
        """Whether prompts go through a chat template."""
        return self.tokenizer.chat_template is not None

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end a text."""
        told = self.model.generation_config.eos_token_id
        listed = told if isinstance(told, list) else [told]
        return frozenset(
            token for token in (*listed, self.tokenizer.eos_token_id) if token is not None
        )

    def encode(self, conversation: Sequence[Message]) -> list[int]:
        """Tokens of a conversation, up to where the answer begins."""
        if not self.templated:
            text = "\n\n".join(message.content for message in conversation)
            return list(self.tokenizer(text)["input_ids"])
        turns = [{"role": message.role, "content": message.content} for message in conversation]
        encoded = self.tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, tokenize=True, return_dict=True
        )
        return list(encoded["input_ids"])

    def plain(self, conversation: Sequence[Message]) -> list[int]:
        """Tokens of what people wrote, without the template."""
        text = "\n".join(message.content for message in conversation)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def load(place: str, folder: Path) -> Checkpoint:
    """Loads a checkpoint in the width that it is stored in, on CUDA devices where there are any.

    Args:
        place: What the user gave the folder as, for complaints.
        folder: With config.json, weights and tokenizer.

    Raises:
        InputError: There is no such folder, or transformers cannot load it.
    """
    if not (folder / "config.json").is_file():
        rule = "needs the folder of a checkpoint, with its config.json"
        raise InputError([Complaint(place, "", rule, str(folder))])
    where = {"device_map": "auto"} if torch.cuda.is_available() else {}
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype="auto", **where
        )
    except LOADING_ERRORS as error:
        rule = f"transformers {transformers.__version__} cannot load it: {_first_line(error)}"
        raise InputError([Complaint(place, "", rule, str(folder))]) from error
    return Checkpoint(folder.resolve().name, model.eval(), tokenizer)


def check_alike(target: Checkpoint, drafter: Checkpoint) -> None:
    """Sees that both read the same tokens.

    Raises:
        InputError: Some token means another text to one than to the other.
    """
    mine, theirs = target.tokenizer.get_vocab(), drafter.tokenizer.get_vocab()
    if mine != theirs:
        differ = len(dict(mine.items() ^ theirs.items()))
        rule = f"must have the target's tokens; {differ} of {len(mine)} differ"
        raise InputError([Complaint("DRAFTER", "", rule, drafter.name)])


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
