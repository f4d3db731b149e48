"""A step-time model: the sum of its terms."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capplan.composer.asked import Asked
from capplan.composer.flaws import falls
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.surface import Array
from capplan.records.caveat import Caveat, Source

Places = NDArray[np.intp]
LAUNCH_S: Final = 60e-6
"""Host time of an operator, assumed: vLLM's products of fp8 in blocks were timed waiting for the
host, and none took less on Hopper."""

REPLAYED_TOKENS: Final = {"vllm": 512}
"""Largest step with a prefill chunk that an engine replays from graphs: vLLM records all sizes up
to `max_cudagraph_capture_size`, 512 by default, piece by piece
(https://docs.vllm.ai/en/latest/design/cuda_graphs.html)."""


@dataclass(frozen=True)
class Composed:
    """T(B, q, c) of one deployment, with prefill chunks.

    A load counts the whole replica. Where GPUs serve sequences of their own (data-parallel
    attention), each has an even share of it.
    """

    asked: Asked
    terms: tuple[Term, ...]

    def step_s(self, load: Load) -> Array:
        """Time of a step [s], shape of the load; NaN outside the tables."""
        return np.asarray(sum(self.parts_s(load).values()))

    def parts_s(self, load: Load) -> dict[str, Array]:
        """The same by part [s]: attention, dense, sparse, shared, head and so on.

        What a prefill step waits for its host beyond the kernels' time counts as fixed.
        """
        # Grids repeat batches at many contexts, and few terms care.
        few, place = without_context(load)
        cheap, dear = _summed(self.terms, few, False), _summed(self.terms, load, True)
        found = {part: time_s[place] for part, time_s in cheap.items()}
        for part, time_s in dear.items():
            found[part] = found.get(part, 0.0) + time_s
        launched = (load.prefill_tokens > 0) & (load.tokens > self.replayed_tokens)
        launching = np.where(launched, self.launching_s, 0.0)
        waiting = np.maximum(0.0, launching - sum(found.values()))
        found["fixed"] = found.get("fixed", 0.0) + waiting
        return found

    @property
    def launching_s(self) -> float:
        """Host time of launching a step's operators one by one [s].

        Steps that decode replay a recorded graph. Most with a prefill chunk have too many sizes to
        be recorded, and smaller ones wait for the host.
        """
        return LAUNCH_S * sum(term.count * term.operators for term in self.terms)

    @property
    def replayed_tokens(self) -> int:
        """Tokens up to which steps with a prefill chunk are replayed too."""
        return REPLAYED_TOKENS.get(self.asked.engine, 0)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the terms come from, each once."""
        named = (source for term in self.terms for source in term.sources)
        return tuple({source.model_dump_json(): source for source in named}.values())

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What to mind, each once: assumptions of the terms, then flaws of their tables."""
        said = [caveat for term in self.terms for caveat in term.caveats]
        return tuple(dict.fromkeys([*said, *falls(self.terms)]))

    @property
    def term_error(self) -> dict[str, float]:
        """Largest relative error of reading tables by part."""
        found: dict[str, float] = {}
        for term in self.terms:
            found[term.part] = max(found.get(term.part, 0.0), term.error)
        return found


def _summed(terms: tuple[Term, ...], load: Load, by_context: bool) -> dict[str, Array]:
    """Time by part of the terms that do, or do not, depend on the context [s]."""
    found: dict[str, Array] = {}
    for term in terms:
        if term.by_context == by_context:
            time_s = np.broadcast_to(term.count * term.at(load), load.batch.shape)
            found[term.part] = found.get(term.part, 0.0) + time_s
    return found


def without_context(load: Load) -> tuple[Load, Places]:
    """Loads that differ in more than the batch's context, each once, and where each cell's is."""
    place: Places = np.zeros(load.batch.shape, dtype=np.intp)
    for column in (load.batch, load.query_tokens, load.prefill_tokens, load.cached_tokens):
        values, own = np.unique(column, return_inverse=True)
        place = place * values.size + own.reshape(column.shape)
    _, first, place = np.unique(place, return_index=True, return_inverse=True)
    columns = (load.batch, load.query_tokens, load.context_tokens, load.prefill_tokens,
               load.cached_tokens)  # fmt: skip
    few = Load(*(column.reshape(-1)[first] for column in columns))
    return few, place.reshape(load.batch.shape)
