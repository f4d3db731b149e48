"""Deployments of served rows, composed of operator tables."""

from functools import cache, partial

from capplan.backtester.deployment import Deployment
from capplan.backtester.tpot import Steps
from capplan.cli.compose_run import served
from capplan.composer import Asked, composed
from capplan.composer.reading import times_s
from capplan.composer.room import room
from capplan.importers.silicon import silicon


@cache
def steps(asked: Deployment) -> Steps:
    """Step times of a deployment, and what its memory holds.

    Raises:
        InputError: An operator has no table.
    """
    tables = silicon(asked.gpu, asked.engine)
    found = composed(
        Asked(
            model=asked.model,
            gpu=asked.gpu,
            split=asked.split,
            engine=asked.engine,
            weights=asked.weights,
            experts=asked.experts,
            cache=asked.cache,
        ),
        tables,
    )
    stored = served(asked.model, asked.weights, asked.experts).stored
    held = room(asked.model, stored, asked.split, asked.cache, tables.limits.memory_bytes)
    return Steps(partial(times_s, found), held.capacity_tokens, asked.split.copies)
