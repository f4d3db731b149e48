"""A model's own answer to a prompt, token by token."""

from collections.abc import Collection, Sequence

import numpy as np

from capplan.profiler.cached import CachedModel
from capplan.profiler.speculation.rejection import distribution, draw


def answer(
    model: CachedModel,
    prompt: Sequence[int],
    max_tokens: int,
    temperature: float,
    ends: Collection[int],
    rng: np.random.Generator,
) -> list[int]:
    """Tokens up to the end of the text or max_tokens.

    Args:
        model: What answers.
        prompt: Its tokens.
        max_tokens: The most that are drawn.
        temperature: 0 takes the likeliest token.
        ends: Tokens that end a text.
        rng: For every draw.
    """
    said: list[int] = []
    while len(said) < max_tokens and (not said or said[-1] not in ends):
        logits = model.logits([*prompt, *said], last=1)[0]
        said.append(draw(distribution(logits, temperature), rng))
    return said
