"""Predictions beside what others measured, and how far apart they lie."""

from typing import Literal

from capplan.records.base import Record
from capplan.units import Compared, Count, Fraction, Ratio, RelativeError

Quantity = Literal["tpot", "moe_layer", "cycle_ratio", "speed_up", "acceptance"]
"""tpot: seconds a token of a served row; moe_layer: seconds of a layer of experts; cycle_ratio: a
round over a plain step; speed_up: of a token by speculation; acceptance: tokens a round."""


class Predicted(Record):
    """One published measurement and what the physics says of it."""

    what: Quantity
    model: str
    gpu: str
    engine: str
    sparse: bool
    """Whether the model has routed experts."""
    measured: Compared
    predicted: Compared | None
    """None where it was refused."""
    low: Compared | None = None
    high: Compared | None = None
    """Ends of the prediction, where it has them."""
    refused: str | None = None
    """Why there is no prediction."""
    source: str
    """The row's name in its source."""

    @property
    def error(self) -> float | None:
        """Predicted over measured, less one."""
        return None if self.predicted is None else self.predicted / self.measured - 1


class ErrorGroup(Record):
    """Errors of the rows that share a model, a GPU or an engine."""

    what: Quantity
    by: Literal["all", "model", "gpu", "engine"]
    name: str
    rows: Count
    refused: Count
    median_ape: Ratio | None
    mean_ape: Ratio | None
    median_error: RelativeError | None
    """With its sign: which way the predictions lean."""


class Refusal(Record):
    """Rows without a prediction that share a reason."""

    what: Quantity
    reason: str
    rows: Count


class Backtest(Record):
    """All that was predicted, and its figures; those of which nothing was read are None.

    `ape`: absolute error as a part of the measured value, over the rows that were predicted.
    """

    capplan: str
    """Version of the program."""
    serving_rows: Count
    serving_tpot_median_ape: Ratio | None
    serving_tpot_mean_ape: Ratio | None
    serving_refused_share: Fraction | None
    serving_tpot_median_ape_moe: Ratio | None
    serving_tpot_mean_ape_moe: Ratio | None
    serving_refused_share_moe: Fraction | None
    serving_tpot_median_ape_dense: Ratio | None
    serving_tpot_mean_ape_dense: Ratio | None
    serving_refused_share_dense: Fraction | None
    moe_layer_rows: Count
    moe_layer_median_ape: Ratio | None
    cycle_ratio_median_ape: Ratio | None
    speedup_pairs: Count
    """Those with enough facts."""
    speedup_sign_agreement: Fraction | None
    """Part of the decided pairs whose speed-up lies on the predicted side of one."""
    speedup_undecided_share: Fraction | None
    """Part of the pairs with enough facts whose ends lie on both sides of one."""
    acceptance_curve_median_ape: Ratio | None
    groups: tuple[ErrorGroup, ...]
    refusals: tuple[Refusal, ...]
    """The most frequent first."""
    rows: tuple[Predicted, ...]
    """All but layers of experts, which have too many."""
