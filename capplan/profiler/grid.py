"""Which steps are measured: full rectangles, because a plan interpolates on them."""

from dataclasses import dataclass
from itertools import product
from typing import Literal

Table = Literal["steps", "mixed", "prefill"]


@dataclass(frozen=True)
class Work:
    """What one forward pass processes.

    `batch` sequences, each with `context_tokens` in its cache and `query_tokens` to process, and
    one more prompt of which `cached_tokens` are in the cache and `prefill_tokens` are processed.
    """

    batch: int
    context_tokens: int
    query_tokens: int
    prefill_tokens: int = 0
    cached_tokens: int = 0

    @property
    def table(self) -> Table:
        """The profile's table that this step belongs to."""
        if not self.batch:
            return "prefill"
        return "mixed" if self.prefill_tokens else "steps"

    @property
    def parts(self) -> tuple["Part", ...]:
        """The sequences in the order of their tokens: decoding ones, then the prompt."""
        decode = Part(self.batch, self.context_tokens, self.query_tokens)
        prompt = Part(1, self.cached_tokens, self.prefill_tokens)
        return tuple(part for part in (decode, prompt) if part.sequences * part.tokens)

    @property
    def tokens(self) -> int:
        """Tokens that pass the layers. [tokens]."""
        return self.batch * self.query_tokens + self.prefill_tokens

    @property
    def cache_tokens(self) -> int:
        """Cache that the step reads; the prompt may share the decoding sequences'. [tokens]."""
        return max(self.batch * self.context_tokens, self.cached_tokens)

    @property
    def head_rows(self) -> int:
        """Tokens whose logits are wanted: every decoding one, of the prompt the last. [tokens]."""
        return self.batch * self.query_tokens + (self.prefill_tokens > 0)


@dataclass(frozen=True)
class Part:
    """Sequences that are processed alike: `context_tokens` cached, `tokens` to process, each."""

    sequences: int
    context_tokens: int
    tokens: int


@dataclass(frozen=True)
class Grid:
    """The axes of a sweep."""

    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    draft_tokens: int
    """Longest draft that a step verifies; every shorter one is measured too."""
    prefill_tokens: tuple[int, ...]
    mixed_batches: tuple[int, ...]

    def works(self) -> tuple[Work, ...]:
        """All steps of the three tables.

        Mixed steps take the shortest context and the shortest and longest query only: what a chunk
        adds hardly depends on the context of others.
        """
        queries = range(1, self.draft_tokens + 2)
        ends = sorted({1, self.draft_tokens + 1})
        shortest = self.contexts[:1]
        steps = product(self.batches, self.contexts, queries)
        mixed = product(self.mixed_batches, shortest, ends, self.prefill_tokens)
        prefill = product(self.prefill_tokens, (0, *self.contexts[-1:]))
        return (
            *(Work(*axes) for axes in steps),
            *(Work(*axes) for axes in mixed),
            *(Work(0, 0, 0, tokens, cached) for tokens, cached in prefill),
        )


def default_grid(kind: Literal["cuda", "cpu"], *, quick: bool) -> Grid:
    """What is measured where the user does not say: a processor is slower, a quick look sparser."""
    return {
        ("cuda", False): _grid(256, (1024, 8192, 32768), 7, 8192),
        ("cuda", True): _grid(256, (1024, 8192), 3, 8192, every=8),
        ("cpu", False): _grid(32, (128, 1024), 4, 512),
        ("cpu", True): _grid(16, (64, 512), 2, 32, every=4),
    }[kind, quick]


def chunks(largest: int, *, quick: bool) -> tuple[int, ...]:
    """Sizes of prefill chunks up to the largest. [tokens]."""
    divisors = (8, 2, 1) if quick else (16, 8, 4, 2, 1)
    return tuple(sorted({max(largest // divisor, 1) for divisor in divisors}))


def _grid(
    most: int, contexts: tuple[int, ...], draft_tokens: int, largest: int, every: int = 2
) -> Grid:
    """Batches from 1 to `most`, each `every` times the one before."""
    batches = [1]
    while batches[-1] < most:
        batches.append(min(batches[-1] * every, most))
    quick = every > 2
    return Grid(
        batches=tuple(batches),
        contexts=contexts,
        draft_tokens=draft_tokens,
        prefill_tokens=chunks(largest, quick=quick),
        mixed_batches=(1, most) if quick else tuple(batches),
    )
