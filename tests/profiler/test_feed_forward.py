"""Experts against the sum over all experts with most weights nought."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor  # noqa: E402

from capplan.profiler.feed_forward import MoeLayer, feed_forward  # noqa: E402
from capplan.profiler.maker import Maker  # noqa: E402
from capplan.records.architecture import Dense, Moe  # noqa: E402

pytestmark = pytest.mark.torch

HIDDEN = 24
SHAPE = Moe(kind="moe", experts=10, experts_per_token=3, expert_width=16, shared_width=12)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def layer(shape: Moe, dtype: torch.dtype = torch.float64) -> tuple[MoeLayer, Maker]:
    make = Maker("cpu", dtype, seed=5)
    return MoeLayer(shape, HIDDEN, make), make


def gated(hidden: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    width = down.shape[0]
    return (F.silu(hidden @ gate_up[:, :width]) * (hidden @ gate_up[:, width:])) @ down


def masked(moe: MoeLayer, shape: Moe, hidden: Tensor, scores: Tensor, ranked: Tensor) -> Tensor:
    """Every expert on every token; those a token did not choose get no weight."""
    threshold = ranked.sort(dim=1, descending=True).values[:, shape.experts_per_token - 1, None]
    weights = torch.where(ranked >= threshold, scores, 0.0)
    weights = weights / weights.sum(dim=1, keepdim=True)
    everything = torch.stack(
        [gated(hidden, moe._gate_up[e], moe._down[e]) for e in range(shape.experts)], dim=1
    )
    return (weights.unsqueeze(-1) * everything).sum(dim=1)


@pytest.mark.parametrize("tokens", [1, 2, 50])
def test_softmax_routing_equals_the_masked_sum(tokens: int) -> None:
    shape = SHAPE.model_copy(update={"shared_width": 0})
    moe, make = layer(shape)
    hidden = make.normal(tokens, HIDDEN)
    scores = (hidden @ moe._router).softmax(dim=1)
    expected = masked(moe, shape, hidden, scores, scores)
    torch.testing.assert_close(moe(hidden), expected, rtol=1e-5, atol=1e-6)


def test_a_bias_moves_the_choice_and_not_the_weights() -> None:
    shape = SHAPE.model_copy(update={"shared_width": 0, "router_bias": True})
    moe, make = layer(shape)
    moe._bias = 0.3 * make.normal(shape.experts).float()
    hidden = make.normal(40, HIDDEN)
    scores = (hidden @ moe._router).float().sigmoid()
    expected = masked(moe, shape, hidden, scores, scores + moe._bias)
    assert not torch.equal(
        (scores + moe._bias).topk(3).indices.sort().values, scores.topk(3).indices.sort().values
    )
    torch.testing.assert_close(moe(hidden), expected, rtol=1e-5, atol=1e-6)


def test_shared_experts_are_added_for_every_token() -> None:
    moe, make = layer(SHAPE)
    hidden = make.normal(9, HIDDEN)
    shared = moe._shared
    assert shared is not None
    whole = moe(hidden)
    moe._shared = None
    torch.testing.assert_close(
        whole - moe(hidden), gated(hidden, shared._gate_up, shared._down), rtol=1e-6, atol=1e-9
    )


def test_the_grouped_kernel_equals_the_loop() -> None:
    moe, make = layer(SHAPE, torch.bfloat16)
    hidden = make.normal(21, HIDDEN)
    _, moe.chosen = moe.route(hidden)
    rows = hidden[moe.chosen.flatten().argsort(stable=True) // SHAPE.experts_per_token]
    counts = moe._tokens_per_expert()
    assert counts.tolist() == torch.bincount(moe.chosen.flatten(), minlength=10).tolist()
    torch.testing.assert_close(
        moe._grouped(rows, counts), moe._looped(rows, counts), rtol=0.02, atol=0.02
    )


def test_a_dense_layer_is_gate_up_and_down() -> None:
    make = Maker("cpu", torch.float64, seed=5)
    dense = feed_forward(Dense(kind="dense", width=16), HIDDEN, make)
    hidden = make.normal(9, HIDDEN)
    torch.testing.assert_close(dense(hidden), gated(hidden, dense._gate_up, dense._down))


def test_weights_of_a_token_sum_to_one() -> None:
    for bias in (False, True):
        moe, make = layer(SHAPE.model_copy(update={"router_bias": bias}))
        weights, _ = moe.route(make.normal(30, HIDDEN))
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(30, dtype=torch.float64))
