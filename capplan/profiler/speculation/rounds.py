"""One request decoded in rounds of drafting and verification, and what it counts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from capplan.profiler.speculation.drafters import Drafter, Model
from capplan.profiler.speculation.rejection import distribution, draw, verify
from capplan.records.acceptance import RequestCounts


@dataclass(frozen=True)
class Decoding:
    """How requests are decoded.

    Attributes:
        draft_tokens: Drafts a round, at most.
        temperature: Of the target; 0 takes the likeliest token.
        max_tokens: A request ends with the round that reaches so many tokens.
        ends: Tokens that end a text.
    """

    draft_tokens: int
    temperature: float
    max_tokens: int
    ends: Collection[int]


@dataclass(frozen=True)
class Request:
    """A decoded request: its text for whoever checks it, and its counts.

    The first token comes of the prompt and belongs to no round; each round emits its kept drafts
    and one token more, so len(tokens) = 1 + rounds + sum(accepted).
    """

    tokens: tuple[int, ...]
    counts: RequestCounts | None
    """None where the first token ended the text."""


def decode(
    target: Model,
    drafter: Drafter,
    prompt: Sequence[int],
    how: Decoding,
    rng: np.random.Generator,
) -> Request:
    """Decodes one request and counts, by position, the rounds that kept a draft.

    Where a text ends inside a round, only what it emits counts: its last token stands for the one
    that every round yields. A round is never cut by max_tokens.
    """
    first = distribution(target.logits(prompt, last=1)[0], how.temperature)
    emitted = [draw(first, rng)]
    rounds = drafted = 0
    accepted = np.zeros(how.draft_tokens, dtype=int)
    while len(emitted) < how.max_tokens and emitted[-1] not in how.ends:
        new, proposed = _round(target, drafter, [*prompt, *emitted], how, rng)
        emitted += new
        rounds += 1
        drafted += proposed
        accepted[: len(new) - 1] += 1
    if not rounds:
        return Request(tuple(emitted), None)
    counts = RequestCounts(
        rounds=rounds, drafted_rounds=drafted, accepted=tuple(map(int, accepted))
    )
    return Request(tuple(emitted), counts)


def _round(
    target: Model,
    drafter: Drafter,
    text: Sequence[int],
    how: Decoding,
    rng: np.random.Generator,
) -> tuple[list[int], bool]:
    """Tokens that a round emits, up to the end of the text, and whether anything was drafted."""
    drafts = drafter.draft(text, how.draft_tokens, rng)
    logits = target.logits([*text, *drafts.tokens], last=len(drafts.tokens) + 1)
    verdict = verify(drafts, distribution(logits, how.temperature), rng)
    tokens = [*drafts.tokens[: verdict.kept], verdict.token]
    ends = [place for place, token in enumerate(tokens) if token in how.ends]
    return tokens[: ends[0] + 1] if ends else tokens, bool(drafts.tokens)
