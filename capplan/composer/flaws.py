"""Places where published times fall as the work grows: said, not smoothed."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from capplan.composer.term import Term
from capplan.physics.load import decode_load
from capplan.records.caveat import Caveat

LEAST: Final = 0.01
"""Of the step; smaller falls change no plan."""
BATCHES: Final = np.unique(np.geomspace(1, 512, 200).astype(int))
CONTEXT_TOKENS: Final = 4096


def falls(terms: Sequence[Term]) -> Iterator[Caveat]:
    """The terms that fall from a smaller batch to a larger one by a share of the step that counts.

    A term that leaves its table within these batches is looked at as far as it reaches.
    """
    load = decode_load(BATCHES, CONTEXT_TOKENS, 1)
    times = [np.broadcast_to(term.count * term.at(load), BATCHES.shape) for term in terms]
    step_s = np.nansum(times, axis=0)
    for term, time_s in zip(terms, times, strict=True):
        highest = np.fmax.accumulate(time_s)
        missing = np.nan_to_num(highest - time_s)
        worst = int((missing / step_s).argmax())
        if missing[worst] > LEAST * step_s[worst]:
            before = int(BATCHES[np.flatnonzero(time_s[: worst + 1] == highest[worst])[0]])
            share = missing[worst] / highest[worst]
            text = (
                f"Published times of {term.what} fall as the batch grows: {100 * share:.0f} % less "
                f"at {BATCHES[worst]} than at {before}. They were not smoothed."
            )
            yield Caveat(about=term.part, text=text)
