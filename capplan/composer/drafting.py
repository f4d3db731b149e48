"""Time of one round's drafting, composed of the same operator tables as the target's step.

A drafter is itself composed as a small model: its layers on the target's GPUs, and an output head.
One that drafts token by token runs its layers once over all tokens just verified, which yields the
first draft, then once over the batch for each further one; one that drafts in parallel runs once
over all drafts.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal

import numpy as np

from capplan.composer import matrices
from capplan.composer.asked import Asked
from capplan.composer.compose import composed
from capplan.composer.composed import Composed
from capplan.composer.reading import curve_s, parts_s
from capplan.composer.refusals import Refused
from capplan.composer.tabulate import digits
from capplan.composer.wanted import Drafting
from capplan.errors import InputError
from capplan.physics.draft_model import DraftModel
from capplan.physics.load import Load, decode_load
from capplan.physics.operators import Silicon
from capplan.physics.precision import formats
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array
from capplan.records.architecture import Architecture
from capplan.records.caveat import Caveat, Origin, Source
from capplan.records.profile import DraftCell, DraftTable

CONTEXT_TOKENS: Final = 4096
ROUND_S: Final = 1.0e-3
ROUND_RANGE_S: Final = (0.3e-3, 2.4e-3)
ROUND: Final = Source(
    what="rejection sampling and preparing of inputs, 1.0 ms a round of speculation",
    where="assumed, 0.3 to 2.4 ms; upper end from EAGLE-3 on gpt-oss-120b, 3.15 ms at 3 and "
    "4.33 ms at 8 drafted tokens (https://github.com/vllm-project/vllm/issues/32628)",
)
CAVEATS: Final = (
    Caveat(about="draft times", text=f"{ROUND.what}: {ROUND.where}."),
    Caveat(
        about="drafter's prefill",
        text="Not modelled: the drafter also runs over every prompt, which prefill and mixed "
        "steps leave out.",
    ),
)
PARALLEL: Final = ("p-eagle", "dflash", "dspark", "domino", "medusa")


@dataclass(frozen=True)
class DraftTime:
    """A drafter on the target's GPUs."""

    layers: Composed
    fuse: Curve | None
    """Joins hidden states of the target, once a round, over the tokens verified."""
    parallel: bool
    copies: int
    """Copies of the target's attention, each with sequences of its own."""

    def at(self, batch: Array, draft_tokens: Array) -> Array:
        """Time of one round's drafting [s], overhead included; NaN outside the tables."""
        context = CONTEXT_TOKENS
        # A drafter that stands whole beside each copy sees that copy's sequences alone.
        share = self.copies / self.layers.asked.split.copies
        verified_tokens = batch * (draft_tokens + 1) / self.copies
        fused_s = 0.0 if self.fuse is None else curve_s(self.fuse, np.maximum(1, verified_tokens))
        batch = np.maximum(1, batch / share)
        verified = decode_load(batch, context, draft_tokens + 1)
        single = decode_load(batch, context, 1)
        if self.parallel:
            block = decode_load(batch, context, draft_tokens)
            return np.asarray(ROUND_S + fused_s + self._layers_s(block) + self._head_s(block))
        later_s = (draft_tokens - 1) * self._layers_s(single) + draft_tokens * self._head_s(single)
        return np.asarray(ROUND_S + fused_s + self._layers_s(verified) + later_s)

    def _layers_s(self, load: Load) -> Array:
        parts = parts_s(self.layers, load)
        total = sum((parts[part] for part in parts if part not in {"fixed", "head"}), np.zeros(()))
        return np.asarray(total)

    def _head_s(self, load: Load) -> Array:
        return parts_s(self.layers, load)["head"]


def draft_time(asked: Asked, drafting: Drafting, tables: Silicon) -> DraftTime:
    """Composes a drafter.

    Raises:
        InputError: An operator of it has no table.
    """
    drafter = drafting.model
    own = replace(
        asked,
        model=as_model(drafter, asked.model),
        split=drafter.split(asked.split),
        weights=_precision(drafter, asked),
        experts=None,
        routing=None,
    )
    head = drafter.head
    layers = composed(own, tables)
    joined = 0 if head is None else head.joined_size
    fuse = _fuse(tables, own.model.hidden_size, joined) if joined else None
    return DraftTime(layers, fuse, kind_of(drafter) == "parallel", asked.split.copies)


def _fuse(tables: Silicon, hidden_size: int, joined_size: int) -> Curve:
    what = "drafter's joining of hidden states"
    try:
        return matrices.product(tables, what, "bf16", (hidden_size, joined_size))[0]
    except Refused as refused:
        raise InputError([refused.complaint]) from refused


def draft_table(
    time: DraftTime, batches: tuple[int, ...], draft_tokens: int, versions: dict[str, str]
) -> DraftTable:
    """Drafting times by batch and draft length; cells outside the operator tables are left out."""
    cells = np.array(list(product(batches, range(1, draft_tokens + 1))))
    times = time.at(*cells.T.astype(float))
    cells, times = cells[np.isfinite(times)], times[np.isfinite(times)]
    low, high = (times - ROUND_S + overhead for overhead in ROUND_RANGE_S)
    rows = tuple(
        DraftCell(
            batch=int(batch),
            draft_tokens=int(drafted),
            draft_s=digits(middle),
            low_s=digits(least),
            high_s=digits(most),
        )
        for (batch, drafted), middle, least, most in zip(cells, times, low, high, strict=True)
    )
    fuse = () if time.fuse is None else (time.fuse.source,)
    origin = Origin(
        kind="composed",
        versions=versions,
        sources=(*time.layers.sources, *fuse, ROUND),
        note=f"At {CONTEXT_TOKENS} tokens of context. From low to high only the assumed overhead "
        "of a round changes, 0.3 to 2.4 ms.",
    )
    return DraftTable(origin=origin, rows=rows)


def kind_of(drafter: DraftModel) -> Literal["autoregressive", "parallel"]:
    """How it drafts."""
    head = drafter.head
    return "parallel" if head is not None and head.kind in PARALLEL else "autoregressive"


def _precision(drafter: DraftModel, asked: Asked) -> str:
    """Of its matrices: blocks of FP8 where the target's are such."""
    part = "prediction" if drafter.head is not None else "dense"
    found: str = formats(drafter.stored)[part]
    return asked.weights if found == "fp8" and asked.weights == "fp8_block" else found


def as_model(drafter: DraftModel, target: Architecture) -> Architecture:
    """A head as a model of its layers alone; its output head is the target's, or its own."""
    if drafter.model is not None:
        return drafter.model
    assert drafter.head is not None
    return Architecture(
        version=1,
        name=drafter.name,
        hidden_size=drafter.hidden_size,
        vocabulary=drafter.head.head_rows or target.vocabulary,
        tied_embeddings=True,
        layer_kinds=drafter.head.layer_kinds,
        source=target.source,
    )
