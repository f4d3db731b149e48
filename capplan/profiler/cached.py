"""A causal language model that remembers what it has read, and forgets what was taken back."""

import inspect
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from capplan.physics.surface import Array


class CachedModel:
    """Logits of one text after another, each read from where it parts from the one before.

    What a round of verification rejects stays in no cache: the next text differs there. A cache
    that does not reach back so far (windows) is begun anew. Models whose state cannot be taken
    back at all (linear attention, state spaces: transformers calls them stateful) read every text
    from its beginning, which is slow and right.
    """

    def __init__(self, model: Any, vocabulary: int) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._remembers = not getattr(model, "_is_stateful", False)
        # transformers 5.19 calls the argument past_key_values, 5.24 calls it cache.
        known = inspect.signature(type(model).forward).parameters
        self._argument = "cache" if "cache" in known else "past_key_values"
        self._begin()

    def _begin(self) -> None:
        self._read: list[int] = []
        self._undoable = 0
        self._cache = None
        if self._remembers:
            self._cache = DynamicCache(config=self._model.config)
            self._cache.activate_past_recording()

    def logits(self, tokens: Sequence[int], last: int) -> Array:
        """What follows each of the last tokens of a text.

        Args:
            tokens: The whole text.
            last: At how many of its last tokens.

        Returns:
            [last, vocabulary]
        """
        self._rewind(_alike(self._read, tokens[: len(tokens) - last]))
        fresh = list(tokens[len(self._read) :])
        with torch.inference_mode():
            out = self._model(
                input_ids=torch.tensor([fresh], device=self._model.device),
                use_cache=self._remembers,
                logits_to_keep=last,
                **{self._argument: self._cache},
            )
        if self._remembers:
            self._read += fresh
            self._undoable = len(fresh)
        return np.asarray(out.logits[0, -last:, : self._vocabulary].double().cpu().numpy())

    def _rewind(self, length: int) -> None:
        """Takes back what was read behind the first tokens."""
        back = len(self._read) - length
        if back > self._undoable:
            self._begin()
        elif self._cache is not None and self._read:
            self._cache.crop(-back)
            del self._read[length:]
            self._undoable = 0


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
