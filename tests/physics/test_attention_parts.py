"""Parameters of every kind of attention, added up by hand for shapes small enough."""

from typing import Any

import pytest

from capplan.physics.attention_parts import attention_parts
from capplan.physics.parameters import count_layers, count_parameters, expert_parameters
from capplan.records.architecture import Architecture, DraftHead, LayerKind, LookupTable
from capplan.records.attention import (
    Attention,
    Compressed,
    Compressor,
    Cross,
    DeltaNet,
    Gqa,
    Indexer,
    Kda,
    Mamba,
    Mla,
    NoAttention,
)
from capplan.records.caveat import Source
from capplan.records.feed_forward import Dense, FeedForward, Moe, NoFeedForward

H = 7
GQA = Gqa(kind="gqa", heads=4, kv_heads=2, head_size=3)
MLA = Mla(
    kind="mla",
    heads=2,
    query_rank=5,
    kv_rank=6,
    nope_head_size=3,
    rope_head_size=4,
    value_head_size=9,
)
V4 = Compressed(
    kind="compressed",
    heads=4,
    head_size=3,
    query_rank=5,
    output_rank=6,
    output_groups=2,
    window_tokens=128,
)


def changed(shape: Any, **changes: Any) -> Any:
    return shape.model_copy(update=changes)


@pytest.mark.parametrize(
    ("shape", "attention", "norms"),
    [
        (GQA, H * (12 + 6 + 6) + 12 * H, 0),
        (changed(GQA, value_head_size=5), H * (12 + 6 + 10) + 20 * H, 0),
        (changed(GQA, projection_bias=True, output_bias=True), 36 * H + 24 + H, 0),
        (changed(GQA, head_norm=True), 36 * H, 6),
        (changed(GQA, whole_norm=True), 36 * H, 12 + 6),
        (changed(GQA, output_gate=True, sinks=True), 36 * H + 12 * H + 4, 0),
        (changed(GQA, keys_as_values=True), 30 * H, 0),
        (
            changed(GQA, indexer=Indexer(heads=2, head_size=5, head_weights=False)),
            36 * H + H * 2 * 5 + H * 5,
            2 * 5,
        ),
        (MLA, H * 5 + 5 * 14 + H * 10 + 6 * (6 + 18) + 18 * H, 6 + 5),
        (changed(MLA, query_rank=None), H * 14 + H * 10 + 6 * 24 + 18 * H, 6),
        (changed(MLA, output_gate=True), H * 5 + 70 + H * 10 + 144 + 36 * H, 11),
        (
            changed(MLA, indexer=Indexer(heads=2, head_size=3, query_rank=5)),
            H * 5 + 70 + H * 10 + 144 + 18 * H + 5 * 6 + H * 3 + H * 2,
            11 + 6,
        ),
        (V4, H * 5 + 5 * 12 + H * 3 + 6 * 12 + 12 * H + 4, 5 + 3),
        (
            changed(V4, compressor=Compressor(tokens_per_entry=4, overlapping=True)),
            H * 5 + 60 + H * 3 + 72 + 12 * H + 4 + 2 * H * 6 + 4 * 6,
            8 + 3,
        ),
        (
            DeltaNet(
                kind="delta_net",
                key_heads=2,
                value_heads=4,
                key_head_size=3,
                value_head_size=5,
                kernel=4,
                state_bits=32,
            ),
            H * (12 + 20 + 20 + 4 + 4) + 20 * H + 4 * 32 + 4 + 4,
            5,
        ),
        (
            Kda(kind="kda", heads=2, head_size=3, kernel=4, state_bits=32),
            H * (18 + 3 + 2 + 3) + 3 * 6 * 2 + 6 * H + 3 * 6 * 4 + 6 + 2,
            3,
        ),
        (
            Kda(kind="kda", heads=2, head_size=3, kernel=4, state_bits=32, full_rank_gate=True),
            H * (18 + 3 + 2 + 6) + 3 * 6 + 6 * H + 3 * 6 * 4 + 6 + 2,
            3,
        ),
        (
            Mamba(
                kind="mamba",
                heads=4,
                head_size=3,
                groups=2,
                state_size=5,
                kernel=4,
                state_bits=32,
            ),
            H * (2 * 12 + 2 * 2 * 5 + 4) + 12 * H + 32 * 5 + 3 * 4,
            12,
        ),
        (Cross(kind="cross", heads=4, kv_heads=2, head_size=3), 36 * H + 2, 6),
        (NoAttention(kind="none"), 0, 0),
    ],
)
def test_attention_by_hand(shape: Attention, attention: int, norms: int) -> None:
    found = attention_parts(shape, H)
    assert found.attention == attention
    assert found.norms == norms


def test_side_by_side_inputs_widen_what_reads_them() -> None:
    assert attention_parts(GQA, H, inputs=2).attention == 36 * H + 24 * H


def layer(feed_forward: FeedForward) -> tuple[LayerKind, ...]:
    nothing = NoAttention(kind="none")
    return (LayerKind(layers=2, attention=nothing, feed_forward=feed_forward, norms=1),)


def moe(**changes: Any) -> Moe:
    shape = {"experts": 5, "experts_per_token": 2, "expert_width": 11, "shared_width": 3}
    return Moe(kind="moe", **(shape | changes))


def test_feed_forward_by_hand() -> None:
    assert count_layers(layer(Dense(kind="dense", width=11)), H).dense == 2 * 3 * 11 * H
    squared = Dense(kind="dense", width=11, gated=False, bias=True)
    assert count_layers(layer(squared), H).dense == 2 * (2 * 11 * H + 11 + H)
    assert count_layers(layer(NoFeedForward(kind="none")), H).total == 2 * H


def test_experts_by_hand() -> None:
    assert expert_parameters(moe(), H) == 3 * 11 * H
    assert expert_parameters(moe(gated=False), H) == 2 * 11 * H
    assert expert_parameters(moe(expert_bias=True), H) == 3 * 11 * H + 22 + H
    latent = moe(latent_size=4, latent_norm=True, shared_gate=True, router_scales=True)
    assert expert_parameters(latent, H) == 3 * 11 * 4
    found = count_layers(layer(latent), H)
    assert found.routed_experts == 2 * 5 * 132
    assert found.routed_experts_active == 2 * 2 * 132
    assert found.shared_experts == 2 * (3 * 3 * H + H + 2 * 4 * H + 4)
    assert found.router == 2 * (5 * H + H + 5)


def test_a_whole_model_by_hand() -> None:
    head = DraftHead(kind="mtp", layer_kinds=layer(moe()), copies=3, joined_size=2 * H, norms=3)
    tiny = Architecture(
        version=1,
        name="tiny",
        hidden_size=H,
        vocabulary=10,
        tied_embeddings=False,
        head_bias=True,
        residual_streams=2,
        stream_head=True,
        extra_norms=2,
        layer_kinds=layer(moe()),
        lookup_tables=(LookupTable(entries=100, width=3, hashes=4),),
        prediction=head,
        source=Source(what="all", where="this test"),
    )
    mixing = 2 * (8 * (2 * H + 1) + 3)
    sparse = 2 * (5 * 3 * 11 * H + 3 * 3 * H + 5 * H)
    reader = 4 * 3 * 3 * H + 4 * H
    found = count_parameters(tiny)
    assert found.lookup_tables == 300
    assert found.attention == reader
    assert found.norms == 2 * (H + mixing) + 3 * H + 2 * (2 * H + 1) + 1
    assert found.total == 20 * H + 10 + sparse + found.norms + reader + 300
    assert found.prediction == 3 * (sparse + 2 * (H + mixing) + H * (2 * H + 3))
    assert found.active == found.total - 300 - 2 * 3 * 3 * 11 * H
