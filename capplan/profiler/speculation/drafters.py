"""What proposes tokens: a model that drafts one after another, or a look back into the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from capplan.physics.surface import Array
from capplan.profiler.speculation.rejection import GREEDY, Drafts, distribution, draw
from capplan.records.acceptance import DrafterKind


class Model(Protocol):
    """A causal language model that has read as much of a text as it can from the text before."""

    def logits(self, tokens: Sequence[int], last: int) -> Array:
        """What follows each of the last tokens of a text. [last, vocabulary]."""
        ...


class Drafter(Protocol):
    """Proposes the tokens that follow a text."""

    kind: DrafterKind

    def draft(self, text: Sequence[int], draft_tokens: int, rng: np.random.Generator) -> Drafts:
        """Proposes up to so many tokens."""
        ...


@dataclass
class ModelDrafter:
    """A causal language model, which draws at the target's temperature."""

    model: Model
    temperature: float
    kind: DrafterKind = "autoregressive"

    def draft(self, text: Sequence[int], draft_tokens: int, rng: np.random.Generator) -> Drafts:
        """Draws one token after another, each given those before."""
        tokens: list[int] = []
        chances = []
        for _ in range(draft_tokens):
            logits = self.model.logits([*text, *tokens], last=1)[0]
            chances.append(distribution(logits, self.temperature))
            tokens.append(draw(chances[-1], rng))
        certain = self.temperature == GREEDY
        return Drafts(tuple(tokens), None if certain else np.array(chances))


@dataclass
class NgramDrafter:
    """Finds the text's last tokens earlier in the text, and proposes what followed them there.

    Of the longest n-gram that is found the first place counts, as in vLLM's proposer; what
    followed there is taken to be certain.

    Source:
        Saxena, "Prompt lookup decoding" (2023).
    """

    shortest: int
    longest: int
    kind: DrafterKind = "ngram"

    def draft(self, text: Sequence[int], draft_tokens: int, rng: np.random.Generator) -> Drafts:
        """Proposes nothing where no n-gram recurs."""
        del rng
        tokens = np.asarray(text)
        for size in range(min(self.longest, len(tokens) - 1), self.shortest - 1, -1):
            windows = np.lib.stride_tricks.sliding_window_view(tokens[:-1], size)
            found = np.flatnonzero((windows == tokens[-size:]).all(axis=1))
            if found.size:
                behind = int(found[0]) + size
                return Drafts(tuple(tokens[behind : behind + draft_tokens].tolist()))
        return Drafts(())
