"""Published tokens a round at the longer draft lengths, from the first three lengths."""

from collections.abc import Iterable, Iterator
from typing import Final

from capplan.physics.acceptance_extension import extension_errors
from capplan.records.backtest import Predicted
from capplan.records.published_curve import PublishedCurve

SHOWN: Final = 3


def curve_rows(curves: Iterable[PublishedCurve]) -> Iterator[Predicted]:
    """Predictions at each length after the third; shorter curves are refused whole.

    Drafters that propose a block at once draft another one at another length: their curves do not
    go on, and are refused.
    """
    for curve in curves:
        tokens = curve.tokens_per_round
        if curve.at_once or len(tokens) <= SHOWN:
            why = "drafts of a block at once" if curve.at_once else f"no length beyond {SHOWN}"
            yield _row(curve, len(tokens), None, why)
            continue
        errors = extension_errors(tokens, SHOWN)
        for length, error in enumerate(errors, start=SHOWN + 1):
            yield _row(curve, length, float(tokens[length - 1] * (1 + error)), None)


def _row(
    curve: PublishedCurve, length: int, predicted: float | None, refused: str | None
) -> Predicted:
    return Predicted(
        what="acceptance",
        model=curve.drafter,
        gpu=curve.gpu,
        engine=curve.engine,
        sparse=True,
        measured=curve.tokens_per_round[length - 1],
        predicted=predicted,
        refused=refused,
        source=f"{curve.name}, {length} drafts",
    )
