import numpy as np
import pytest

from capplan.backtester.figures import backtest
from capplan.backtester.moe_layers import LayerErrors
from capplan.records.backtest import Predicted


def row(what, measured, predicted, *, sparse=False, **more):
    return Predicted(
        what=what, model="m", gpu="g", engine="e", sparse=sparse, measured=measured,
        predicted=predicted, source="s", **more,
    )  # fmt: skip


def test_figures_are_those_counted_by_hand():
    rows = [
        row("tpot", 10.0, 11.0),
        row("tpot", 10.0, 8.0),
        row("tpot", 10.0, 10.0),
        row("tpot", 10.0, 14.0, sparse=True),
        row("tpot", 10.0, None, sparse=True, refused="no table"),
        row("acceptance", 4.0, 3.8, sparse=True),
    ]
    layers = [
        LayerErrors("g", "e", 128, 8, np.array([0.05, -0.01])),
        LayerErrors("g", "f", 256, 8, np.array([-0.3])),
    ]
    found = backtest("0", rows, layers)
    assert found.serving_rows == 5
    # |errors| 0.1, 0.2, 0, 0.4
    assert found.serving_tpot_median_ape == pytest.approx(0.15)
    assert found.serving_tpot_mean_ape == pytest.approx(0.175)
    assert found.serving_refused_share == pytest.approx(1 / 5)
    assert found.serving_tpot_median_ape_dense == pytest.approx(0.1)
    assert found.serving_tpot_mean_ape_dense == pytest.approx(0.1)
    assert found.serving_tpot_median_ape_moe == pytest.approx(0.4)
    assert found.serving_refused_share_moe == pytest.approx(0.5)
    assert found.serving_refused_share_dense == 0
    assert found.moe_layer_rows == 3
    assert found.moe_layer_median_ape == pytest.approx(0.05)
    by_engine = [one for one in found.groups if one.what == "moe_layer" and one.by == "engine"]
    assert [(one.name, one.rows) for one in by_engine] == [("e", 2), ("f", 1)]
    assert by_engine[0].median_error == pytest.approx(0.02)
    assert found.acceptance_curve_median_ape == pytest.approx(0.05)
    assert [one.reason for one in found.refusals] == ["no table"]
    served = next(one for one in found.groups if one.what == "tpot" and one.by == "engine")
    assert (served.name, served.rows, served.refused) == ("e", 5, 1)
    assert served.median_error == pytest.approx(0.05)  # of −0.2, 0, 0.1, 0.4


def test_signs_count_among_decided_pairs_and_the_rest_are_undecided():
    pairs = [
        row("speed_up", 1.3, 1.4, low=1.1, high=1.7),  # right
        row("speed_up", 0.9, 0.8, low=0.7, high=0.95),  # right
        row("speed_up", 0.9, 1.2, low=1.05, high=1.3),  # wrong
        row("speed_up", 1.2, 1.1, low=0.9, high=1.3),  # undecided
        row("speed_up", 1.2, None, refused="no such model"),
    ]
    found = backtest("0", pairs)
    assert found.speedup_pairs == 4
    assert found.speedup_sign_agreement == pytest.approx(2 / 3)
    assert found.speedup_undecided_share == pytest.approx(1 / 4)
    assert found.speedup_pairs == 4


def test_figures_of_nothing_are_none():
    found = backtest("0", [])
    assert found.serving_rows == 0
    assert found.serving_tpot_median_ape is None
    assert found.serving_refused_share is None
    assert found.speedup_sign_agreement is None
    assert found.speedup_undecided_share is None
