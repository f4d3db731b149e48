"""The exact rule by which drafts are kept: what comes out is distributed as without drafts.

Source:
    Leviathan, Kalman and Matias, "Fast Inference from Transformers via Speculative Decoding"
    (arXiv 2211.17192), algorithm 1 and appendix A.1; Chen et al. (arXiv 2302.01318), theorem 1.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from capplan.physics.surface import Array

GREEDY: Final = 0.0
"""Temperature at which the likeliest token is taken."""


@dataclass(frozen=True)
class Drafts:
    """Proposed tokens, and the distributions that they were drawn from.

    Attributes:
        tokens: In order; none where the drafter has nothing to say.
        chances: Rows sum to 1; None where each token was certain. [drafts, vocabulary]
    """

    tokens: tuple[int, ...]
    chances: Array | None = None


@dataclass(frozen=True)
class Verdict:
    """How many drafts were kept, and the target's own token behind them."""

    kept: int
    token: int


def distribution(logits: Array, temperature: float) -> Array:
    """Chances of tokens at a temperature; at GREEDY all on the likeliest.

    Args:
        logits: [..., vocabulary]
        temperature: 0 or more.

    Returns:
        Sums to 1 over the vocabulary. [..., vocabulary]
    """
    if temperature == GREEDY:
        certain = np.zeros(logits.shape)
        np.put_along_axis(certain, logits.argmax(axis=-1)[..., None], 1.0, axis=-1)
        return certain
    # Towards greedy the others' exponents leave all numbers: their chance is nought.
    with np.errstate(over="ignore"):
        scaled = (logits - logits.max(axis=-1, keepdims=True)) / temperature
    chances = np.exp(scaled)
    return np.asarray(chances / chances.sum(axis=-1, keepdims=True))


def verify(drafts: Drafts, target: Array, rng: np.random.Generator) -> Verdict:
    """Keeps drafts until one is rejected, and draws the token that takes its place.

    Draft x is kept with chance min(1, p(x) / q(x)); behind the first that is not, the token is
    drawn from the excess max(0, p − q). Behind a last kept draft it is drawn from the target.

    Args:
        drafts: What was proposed, with its distributions q.
        target: The target's distributions p at the drafts' places and the one behind them.
            [drafts + 1, vocabulary]
        rng: For every draw.
    """
    for place, token in enumerate(drafts.tokens):
        wanted = target[place]
        offered = 1.0 if drafts.chances is None else drafts.chances[place, token]
        if rng.random() * offered < wanted[token]:
            continue
        return Verdict(place, draw(_excess(drafts, place, wanted), rng))
    return Verdict(len(drafts.tokens), draw(target[len(drafts.tokens)], rng))


def draw(weights: Array, rng: np.random.Generator) -> int:
    """A token by its weight, which need not sum to 1. [vocabulary]."""
    climbing = np.cumsum(weights)
    # Right of equal sums, so that a token of weight nought is never drawn.
    return int(np.searchsorted(climbing, rng.random() * climbing[-1], side="right"))


def _excess(drafts: Drafts, place: int, wanted: Array) -> Array:
    if drafts.chances is not None:
        return np.asarray(np.maximum(wanted - drafts.chances[place], 0.0))
    rest: Array = wanted.copy()
    rest[drafts.tokens[place]] = 0.0
    return rest
