"""Puts a deployment together, or says all that stands in the way."""

from collections.abc import Iterator

import numpy as np

from capplan.composer.asked import Asked
from capplan.composer.composed import Composed
from capplan.composer.layers import layer_terms, own, vocabulary_on_gpu
from capplan.composer.matrices import product
from capplan.composer.refusals import Refused
from capplan.composer.term import Term
from capplan.errors import Complaint, InputError
from capplan.physics.load import Load
from capplan.physics.operators import Silicon
from capplan.physics.sharding import broken_rules
from capplan.physics.surface import Array
from capplan.records.caveat import Source

FIXED_S = 0.5e-3
FIXED = Source(
    what="host time of a step",
    where="assumed: 0.5 ms to schedule, sample and launch, as far as no kernel hides it",
)


def composed(asked: Asked, tables: Silicon) -> Composed:
    """A step-time model of a deployment.

    Args:
        asked: The deployment.
        tables: Operator times of its GPU and engine.

    Raises:
        InputError: The model cannot be split so, or an operator has no table; all reasons at once.
    """
    broken = broken_rules(asked.model.layer_kinds, asked.split)
    if broken:
        raise InputError([Complaint("compose", one.option, one.rule, one.found) for one in broken])
    complaints: list[Complaint] = []
    terms: list[Term] = [Term("fixed", "host", 1, _fixed, (FIXED,))]
    for kind in asked.model.layer_kinds:
        terms += _kept(layer_terms(asked, tables, kind), complaints)
    terms += _kept(_head(asked, tables), complaints)
    if complaints:
        raise InputError(tuple(dict.fromkeys(complaints)))
    return Composed(asked, tuple(terms))


def _head(asked: Asked, tables: Silicon) -> Iterator[Term]:
    shape = vocabulary_on_gpu(asked), asked.model.hidden_size
    curve, error = product(tables, "output head", "bf16", shape)

    def at(load: Load) -> Array:
        return curve.within(np.maximum(load.sampled_rows, 1))

    term = Term("head", "output head", 1, at, (curve.source,), error)
    yield term if asked.split.copies == 1 else own(term, asked.split.copies)


def _kept(terms: Iterator[Term], complaints: list[Complaint]) -> list[Term]:
    """The terms, or as many as come before a refusal, which joins the complaints."""
    found: list[Term] = []
    try:
        found.extend(terms)
    except Refused as refused:
        complaints.append(refused.complaint)
    return found


def _fixed(load: Load) -> Array:
    return np.full(load.tokens.shape, FIXED_S)
