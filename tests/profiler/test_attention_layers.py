"""Attention against plain loops, latent attention against its expansion, rounds against steps."""

import math
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from capplan.profiler.attention import attend  # noqa: E402
from capplan.profiler.attention_layers import GqaLayer, MlaLayer, by_sequence  # noqa: E402
from capplan.profiler.grid import Part, Work  # noqa: E402
from capplan.profiler.maker import Maker  # noqa: E402
from capplan.records.architecture import Gqa, Mla  # noqa: E402

pytestmark = pytest.mark.torch

# Scores are kept in 32 bits by design, whatever the type of what goes in.
assert_close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)

HIDDEN = 48
GQA = Gqa(kind="gqa", heads=6, kv_heads=2, head_size=8, projection_bias=True, head_norm=True)
MLA = Mla(
    kind="mla",
    heads=4,
    query_rank=20,
    kv_rank=16,
    nope_head_size=12,
    rope_head_size=4,
    value_head_size=10,
)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def maker(dtype: torch.dtype = torch.float64) -> Maker:
    return Maker("cpu", dtype, seed=3)


def naive(query: Tensor, keys: Tensor, values: Tensor, context: int) -> Tensor:
    """One query at a time over all that it may see. [sequences, heads, tokens, value size]."""
    out = torch.empty(*query.shape[:3], values.shape[3], dtype=query.dtype)
    group = query.shape[1] // keys.shape[1]
    for sequence in range(query.shape[0]):
        for head in range(query.shape[1]):
            for token in range(query.shape[2]):
                seen = context + token + 1
                scores = keys[sequence, head // group, :seen] @ query[sequence, head, token]
                weights = torch.softmax(scores, dim=0)
                out[sequence, head, token] = weights @ values[sequence, head // group, :seen]
    return out


@pytest.mark.parametrize("context", [0, 1, 37])
@pytest.mark.parametrize("tokens", [1, 4, 33])
@pytest.mark.parametrize(("kv_heads", "value_size"), [(6, 8), (2, 8), (1, 5)])
def test_attention_in_two_parts_equals_attention_token_by_token(
    context: int, tokens: int, kv_heads: int, value_size: int
) -> None:
    make = maker()
    query = make.normal(3, 6, tokens, 8)
    keys = make.normal(3, kv_heads, context + tokens, 8)
    values = make.normal(3, kv_heads, context + tokens, value_size)
    cached = (keys[:, :, :context], values[:, :, :context])
    own = (keys[:, :, context:], values[:, :, context:])
    assert_close(attend(query, cached, own), naive(query, keys, values, context))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_narrow_types_stay_near_the_exact_result(dtype: torch.dtype) -> None:
    make = maker(dtype)
    query = make.normal(2, 4, 3, 16) / 4
    keys, values = make.normal(2, 2, 2, 40, 16)
    out = attend(query, (keys[:, :, :37], values[:, :, :37]), (keys[:, :, 37:], values[:, :, 37:]))
    exact = naive(query.double(), keys.double(), values.double(), 37)
    torch.testing.assert_close(out.double(), exact, atol=0.02, rtol=0.02)


def test_a_mixed_step_equals_its_parts_alone() -> None:
    for layer in (
        GqaLayer(GQA, HIDDEN, 200, maker()),
        MlaLayer(MLA, HIDDEN, 200, maker()),
    ):
        hidden = maker().normal(3 * 2 + 40, HIDDEN)
        mixed = layer(hidden, Work(3, 20, 2, prefill_tokens=40, cached_tokens=30))
        decode = layer(hidden[:6], Work(3, 20, 2))
        prompt = layer(hidden[6:], Work(0, 0, 0, prefill_tokens=40, cached_tokens=30))
        assert_close(mixed, torch.cat([decode, prompt]))


def test_verifying_tokens_at_once_equals_decoding_them_one_by_one() -> None:
    """The cache of the second way grows by the keys and values of what was decoded before."""
    layer = GqaLayer(GQA, HIDDEN, 200, maker())
    sequences, context, tokens = 3, 20, 5
    hidden = maker().normal(sequences * tokens, HIDDEN)
    verified = layer(hidden, Work(sequences, context, tokens)).view(sequences, tokens, HIDDEN)

    part = Part(sequences, context, tokens)
    query, keys, values = (by_sequence(part, t) for t in layer.project(hidden))
    grown = layer.context(part)
    for token in range(tokens):
        own = (keys[:, :, token : token + 1], values[:, :, token : token + 1])
        mixed = attend(query[:, :, token : token + 1], grown, own)
        decoded = mixed.transpose(1, 2).reshape(sequences, -1) @ layer._out
        assert_close(verified[:, token], decoded)
        grown = (torch.cat([grown[0], own[0]], dim=2), torch.cat([grown[1], own[1]], dim=2))


@pytest.mark.parametrize("context", [0, 9])
@pytest.mark.parametrize("rank", [20, None])
def test_absorbed_latent_attention_equals_its_expansion(context: int, rank: int | None) -> None:
    shape = MLA.model_copy(update={"query_rank": rank})
    layer = MlaLayer(shape, HIDDEN, 200, maker())
    part = Part(3, context, 5)
    query, latent = layer.project(maker().normal(15, HIDDEN))
    queries, own = by_sequence(part, query), by_sequence(part, latent[:, None])
    absorbed = layer.absorbed(part, queries, own)
    assert_close(absorbed, layer.expanded(part, queries, own))

    # Once more by hand: every head's own keys and values from the latent vectors.
    cached = torch.cat([layer.context(part), own], dim=2)[:, 0]
    keys = torch.stack(
        [
            torch.cat([cached[..., :16] @ layer._key_up[head], cached[..., 16:]], dim=-1)
            for head in range(shape.heads)
        ],
        dim=1,
    )
    values = torch.stack(
        [cached[..., :16] @ layer._value_up[head] for head in range(shape.heads)], dim=1
    )
    expected = naive(queries, keys, values, context).transpose(1, 2).reshape(15, -1)
    assert_close(absorbed, expected)


def test_projections_have_the_published_sizes() -> None:
    layer = MlaLayer(MLA, HIDDEN, 10, maker())
    query, latent = layer.project(maker().normal(7, HIDDEN))
    assert query.shape == (7, 4, 16)
    assert latent.shape == (7, 20)
    gqa = GqaLayer(GQA, HIDDEN, 10, maker())
    shapes = [tuple(tensor.shape) for tensor in gqa.project(maker().normal(7, HIDDEN))]
    assert shapes == [(7, 6, 8), (7, 2, 8), (7, 2, 8)]


def test_queries_are_scaled_after_the_head_norm() -> None:
    gqa = GqaLayer(GQA, HIDDEN, 10, maker())
    query, keys, _ = gqa.project(maker().normal(7, HIDDEN))
    mean_square = query.square().mean(dim=-1) * GQA.head_size
    assert_close(mean_square, torch.ones_like(mean_square), rtol=1e-4, atol=0)
    assert math.isclose(keys.square().mean().item(), 1, rel_tol=1e-4)
