"""A composed deployment in a few figures."""

from itertools import product
from typing import Final

import numpy as np

from capplan.composer.profile import ComposedProfile
from capplan.composer.room import CACHE_BYTES
from capplan.composer.tabulate import digits
from capplan.physics.cache import held_bytes
from capplan.physics.load import decode_load
from capplan.physics.memory import batch_that_fits
from capplan.physics.sharding import on_gpu
from capplan.records.composition import ComposedStep, Composition, SequencesHeld

CONTEXT_TOKENS: Final = 4096
BATCHES: Final = (1, 4, 16, 64, 256)
CONTEXTS: Final = (1024, 4096, 16384, 65536)
DRAFTS: Final = 3


def summary(found: ComposedProfile, gpu_memory_bytes: float, version: str) -> Composition:
    """Memory, sequences that fit, and steps with their parts.

    Args:
        found: The deployment.
        gpu_memory_bytes: Of one GPU.
        version: Of this program.
    """
    queries = [1, *((DRAFTS + 1,) if DRAFTS + 1 in found.grid.query_tokens else ())]
    batches = [batch for batch in BATCHES if batch <= found.grid.batches[-1]]
    errors = found.band.middle.term_error
    return Composition(
        capplan=version,
        gpu_memory_bytes=gpu_memory_bytes,
        usable_bytes=found.room.usable_bytes,
        weights_on_gpu_bytes=found.room.weights_bytes,
        kv_bytes_per_token=found.room.kv_bytes_per_token,
        held=tuple(_held(found, context) for context in CONTEXTS),
        steps=tuple(_step(found, batch, query) for batch, query in product(batches, queries)),
        part_error={part: digits(error) for part, error in errors.items() if error},
        profile=found.profile,
    )


def _held(found: ComposedProfile, context_tokens: int) -> SequencesHeld:
    asked, room = found.band.middle.asked, found.room
    kinds = on_gpu(asked.model.layer_kinds, asked.split)
    one = held_bytes(kinds, context_tokens, CACHE_BYTES[asked.cache])
    fits = batch_that_fits(room.usable_bytes - room.weights_bytes, one, 0.0)
    return SequencesHeld(
        context_tokens=context_tokens, sequences=asked.split.copies * int(float(fits) + 1e-9)
    )


def _step(found: ComposedProfile, batch: int, query_tokens: int) -> ComposedStep:
    load = decode_load(np.array([batch]), CONTEXT_TOKENS, query_tokens)
    (step,), (low,), (high,) = found.band.at(load)
    parts = found.band.middle.parts_s(load)
    return ComposedStep(
        batch=batch,
        context_tokens=CONTEXT_TOKENS,
        query_tokens=query_tokens,
        step_s=digits(step),
        low_s=digits(low),
        high_s=digits(high),
        parts_s={part: digits(float(np.ravel(time)[0])) for part, time in parts.items()},
    )
