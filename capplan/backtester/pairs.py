"""Published rounds as rows of a backtest: predicted or refused, and the signs of speed-ups."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from capplan.backtester.rounds import Ranged, RoundResult, Steps, missing, predict
from capplan.errors import InputError
from capplan.records.backtest import Predicted, Quantity
from capplan.records.published import PublishedRound

Find = Callable[[PublishedRound], Steps]
"""Step and drafting times of a round's deployment; raises InputError where it knows none."""
NO_DIFFERENCE: Final = 0.005
"""A speed-up this near to 1 was measured as neither gain nor loss."""


def once(
    points: Sequence[PublishedRound], reports: Sequence[PublishedRound]
) -> tuple[PublishedRound, ...]:
    """All points, and those reports that no point tells."""
    told = {_told(one) for one in points}
    return (*points, *(one for one in reports if one.source is None or _told(one) not in told))


def _told(one: PublishedRound) -> tuple[object, ...]:
    gain = one.speed_up and round(one.speed_up, 2)
    return one.source, one.batches, one.query_tokens, one.beams, one.tokens_per_round, gain


def rows(published: Sequence[PublishedRound], steps: Find) -> tuple[Predicted, ...]:
    """Cycle ratios and speed-ups beside their predictions, or beside why there is none.

    Args:
        published: What was measured.
        steps: Of each round's deployment.
    """
    return tuple(row for one in published for row in _rows(one, steps))


def agreement(rows: Sequence[Predicted]) -> float | None:
    """Part of the decided pairs whose sign was measured as predicted; None without any."""
    signs = [_gains(row) == (row.measured > 1) for row in pairs(rows) if decided(row)]
    return sum(signs) / len(signs) if signs else None


def _gains(row: Predicted) -> bool:
    return row.low is not None and row.low > 1


def undecided(rows: Sequence[Predicted]) -> float | None:
    """Part of the pairs whose range holds 1; None where there is no pair."""
    found = pairs(rows)
    return sum(not decided(row) for row in found) / len(found) if found else None


def pairs(rows: Sequence[Predicted]) -> list[Predicted]:
    """Predicted speed-ups of rounds that were measured to gain or to lose."""
    return [
        row
        for row in rows
        if row.what == "speed_up"
        and row.predicted is not None
        and abs(row.measured - 1) > NO_DIFFERENCE
    ]


def decided(row: Predicted) -> bool:
    """Whether its range lies on one side of 1."""
    return row.low is not None and row.high is not None and not row.low <= 1 <= row.high


def _rows(one: PublishedRound, steps: Find) -> Iterator[Predicted]:
    found, refused, sparse = _found(one, steps)
    for what, measured in _measured(one):
        ratio = None if found is None else _ratio(found, what)
        if found is not None and ratio is None:
            refused = "tokens per round not said"
        yield Predicted(
            what=what,
            model=one.model or "not said",
            gpu=one.gpu or "not said",
            engine=one.engine or "not said",
            sparse=sparse,
            measured=measured,
            predicted=None if ratio is None else ratio.value,
            low=None if ratio is None else ratio.low,
            high=None if ratio is None else ratio.high,
            refused=refused,
            source=one.name,
        )


def _found(one: PublishedRound, steps: Find) -> tuple[RoundResult | None, str | None, bool]:
    """The prediction or why there is none, and whether the model has experts."""
    lacking = missing(one)
    if lacking is not None:
        return None, lacking, one.sparse
    try:
        own = steps(one)
    except InputError as error:
        first = error.complaints[0]
        return None, f"{first.key}: {first.rule}", one.sparse
    found = predict(one, own)
    return found, None if found else "outside the tables", own.sparse


def _measured(one: PublishedRound) -> Iterator[tuple[Quantity, float]]:
    """What was measured; a cycle ratio also where it follows from gain and tokens per round."""
    cycle = one.cycle_ratio
    if cycle is None and one.tokens_per_round is not None and one.speed_up is not None:
        cycle = one.tokens_per_round / one.speed_up
    if cycle is not None:
        yield "cycle_ratio", cycle
    if one.speed_up is not None:
        yield "speed_up", one.speed_up


def _ratio(found: RoundResult, what: Quantity) -> Ranged | None:
    return found.cycle if what == "cycle_ratio" else found.speed_up
