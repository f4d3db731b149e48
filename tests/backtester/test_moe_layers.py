"""Layers of experts of tables made by a rule whose answer is known."""

import numpy as np
import pytest

from capplan.backtester.moe_layers import layer_errors
from capplan.physics.operators import TIME, Limits, Silicon, Table
from capplan.physics.synthetic_routing import routed_counts
from capplan.records.caveat import Source

SAID = Source(what="made", where="here")
TOKENS = (1, 4, 16, 64)


def table(version, slower=1.0, kernel="a", routings=("balanced", "power_law_1.2")):
    """30 us and 2 us an expert; power-law rows take `slower` times that."""
    rows = [(routing, tokens) for routing in routings for tokens in TOKENS]
    times = [
        (30e-6 + 2e-6 * (routed_counts(routing, tokens, 64, 8) > 0).sum(axis=1).mean())
        * (slower if routing != "balanced" else 1.0)
        for routing, tokens in rows
    ]
    count = len(rows)
    columns = {
        "kernel_source": np.full(count, kernel, dtype=object),
        "moe_dtype": np.full(count, "fp8", dtype=object),
        "hidden_size": np.full(count, 2048),
        "inter_size": np.full(count, 768),
        "moe_tp_size": np.full(count, 1),
        "moe_ep_size": np.full(count, 1),
        "num_experts": np.full(count, 64),
        "topk": np.full(count, 8),
        "num_tokens": np.array([tokens for _, tokens in rows]),
        "distribution": np.array([routing for routing, _ in rows], dtype=object),
        TIME: np.array(times),
    }
    return Table(columns, version, SAID)


def silicon(*tables):
    limits = Limits(1e12, 1e15, 0.0, 8, SAID)
    return Silicon("gpu", "own", limits, ("own",), lambda *_: tables)


def test_what_follows_the_rule_is_predicted_and_what_does_not_is_off_by_as_much():
    (right,) = layer_errors(silicon(table("1.0")))
    assert right.errors == pytest.approx(np.zeros(len(TOKENS)), abs=0.02)
    (slow,) = layer_errors(silicon(table("1.0", slower=2.0)))
    assert slow.errors == pytest.approx(np.full(len(TOKENS), -0.5), abs=0.02)
    assert (slow.gpu, slow.engine, slow.experts, slow.experts_per_token) == ("gpu", "own", 64, 8)


def test_a_layer_counts_once_from_the_newest_version_that_timed_it():
    found = list(
        layer_errors(silicon(table("2.0"), table("1.0", slower=2.0), table("1.0", kernel="b")))
    )
    assert len(found) == 2
    assert all(np.abs(one.errors).max() < 0.03 for one in found)


def test_layers_without_rows_to_fit_or_to_test_are_left_out():
    alone = [table("1.0", routings=(name,)) for name in ("balanced", "power_law_1.2")]
    for one in alone:
        assert list(layer_errors(silicon(one))) == []
