"""Tells real text from random tokens by how much it surprises the model.

Tokens drawn alike from the whole vocabulary cost any model at least ln(vocabulary) nats each, by
Gibbs' inequality; text that a model knows how to read costs a third of that or less.
SmolLM2-135M (ln 49,152 = 10.8): 2.0 to 4.8 for prompts in English, German, Russian, Hebrew and
Chinese, code, JSON and a gene's letters; 11.2 to 15.0 for random tokens, read back or not, and for
random words.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from capplan.errors import Complaint, InputError
from capplan.profiler.checkpoint import Checkpoint
from capplan.records.prompt import Prompt

RANDOM: Final = 0.75
"""Part of ln(vocabulary) from which a text counts as random: those above had 0.44 and 1.04."""
FEWEST_TOKENS: Final = 8
"""A shorter text is not judged: its first words surprise everyone."""


def surprise(model: Any, tokens: Sequence[int]) -> float:
    """Mean cost of a text's tokens but the first, each given those before. [nats]."""
    read = torch.tensor([tokens], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=read, use_cache=False).logits[0, :-1]
    chances = logits.float().log_softmax(dim=-1)
    return -float(chances.gather(1, read[0, 1:, None].to(chances.device)).mean())


def looks_random(model: Any, tokens: Sequence[int], vocabulary: int) -> bool:
    """Whether a text is no likelier than random tokens to the model that is to read it.

    So is every text to a model with random weights.
    """
    if len(tokens) < FEWEST_TOKENS:
        return False
    return bool(surprise(model, tokens) >= RANDOM * math.log(vocabulary))


def check_real(checkpoint: Checkpoint, source: str, prompts: Sequence[Prompt]) -> None:
    """Refuses prompts of random tokens, all lines at once.

    Raises:
        InputError: With each prompt that is no likelier than random tokens.
    """
    random = [
        place
        for place, prompt in enumerate(prompts, start=1)
        if looks_random(
            checkpoint.model, checkpoint.plain(prompt.conversation), checkpoint.vocabulary
        )
    ]
    if not random:
        return
    rule = f"{len(random)} of {len(prompts)} prompts surprise the model as random tokens do"
    remedy = (
        "Acceptance and routing of random tokens are not those of text: use what users write. "
        "Where all prompts are text, the checkpoint's weights are random or broken."
    )
    listed = ", ".join(map(str, random[:10])) + (", …" if len(random) > 10 else "")
    raise InputError([Complaint(source, "", rule, f"prompt {listed}", remedy)])
