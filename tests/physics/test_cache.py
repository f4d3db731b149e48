"""What sequences keep, against sums done by hand and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.physics.cache import (
    cache_by_kind,
    held_bytes,
    kept,
    kv_bytes_per_token,
    state_bytes_per_sequence,
)
from capplan.records.architecture import Architecture, LayerKind
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
from capplan.records.feed_forward import NoFeedForward

INDEXER = Indexer(heads=3, head_size=6, tokens_per_key=2, pooling="learned")
WHOLE = Gqa(kind="gqa", heads=4, kv_heads=2, head_size=8, value_head_size=5)
NARROW = WHOLE.model_copy(update={"window_tokens": 10})
LATENT = Mla(
    kind="mla",
    heads=4,
    query_rank=None,
    kv_rank=16,
    nope_head_size=8,
    rope_head_size=4,
    value_head_size=8,
    indexer=INDEXER,
    read_tokens=64,
)
COMPRESSED = Compressed(
    kind="compressed",
    heads=4,
    head_size=8,
    query_rank=4,
    output_rank=2,
    output_groups=2,
    window_tokens=10,
    compressor=Compressor(tokens_per_entry=4),
)
DELTA = DeltaNet(
    kind="delta_net",
    key_heads=2,
    value_heads=4,
    key_head_size=3,
    value_head_size=5,
    kernel=4,
    state_bits=32,
)
KDA = Kda(kind="kda", heads=2, head_size=3, kernel=4, state_bits=32)
MAMBA = Mamba(kind="mamba", heads=4, head_size=3, groups=2, state_size=5, kernel=4, state_bits=32)
CROSS = Cross(kind="cross", heads=4, kv_heads=2, head_size=8)
NONE = NoAttention(kind="none")


def model(*attention: Attention, layers: int = 1) -> Architecture:
    nothing = NoFeedForward(kind="none")
    return Architecture(
        version=1,
        name="test",
        hidden_size=8,
        vocabulary=10,
        tied_embeddings=True,
        layer_kinds=tuple(
            LayerKind(layers=layers, attention=one, feed_forward=nothing) for one in attention
        ),
        source=Source(what="all", where="this test"),
    )


@pytest.mark.parametrize(
    ("attention", "growing", "fixed"),
    [
        (WHOLE, 2 * (8 + 5) * 2, 0),
        (NARROW, 0, 10 * 2 * (8 + 5) * 2),
        (LATENT, (16 + 4 + 6 / 2) * 2, 0),
        (COMPRESSED, 8 / 4 * 2, 10 * 8 * 2),
        (DELTA, 0, 4 * 3 * 5 * 4 + 3 * (2 * 6 + 20) * 2),
        (KDA, 0, 2 * 3 * 3 * 4 + 3 * 3 * 6 * 2),
        (MAMBA, 0, 4 * 3 * 5 * 4 + 3 * (12 + 2 * 2 * 5) * 2),
        (CROSS, 0, 0),
        (NONE, 0, 0),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_what_a_layer_keeps(attention: Attention, growing: float, fixed: float) -> None:
    assert kv_bytes_per_token(model(attention), 2) == growing
    assert state_bytes_per_sequence(model(attention), 2) == fixed
    assert kv_bytes_per_token(model(attention, layers=7), 2) == 7 * growing
    assert state_bytes_per_sequence(model(attention, layers=7), 2) == 7 * fixed


def test_keys_of_an_indexer_may_have_a_width_of_their_own() -> None:
    assert kv_bytes_per_token(model(LATENT), 2, index_bytes_per_value=1) == (16 + 4) * 2 + 3


def test_a_layer_that_takes_anothers_choice_keeps_no_index() -> None:
    shared = LATENT.model_copy(update={"indexer": None})
    assert kept(shared).index_values_per_token == 0


def test_states_keep_their_width_when_the_cache_is_narrowed() -> None:
    wide, narrow = (state_bytes_per_sequence(model(DELTA), size) for size in (2, 1))
    assert wide - narrow == 3 * (2 * 6 + 20)


@given(context=st.floats(0, 1e6))
def test_a_sequence_fills_its_windows_and_then_grows_by_the_token(context: float) -> None:
    mixed = model(WHOLE, NARROW, DELTA)
    size = held_bytes(mixed.layer_kinds, context, 2)
    states = sum(row.state_bytes for row in cache_by_kind(mixed.layer_kinds, 2))
    per_window_token = 2 * (8 + 5) * 2
    expected = states + context * 52 + min(context, 10) * per_window_token
    assert size == pytest.approx(expected)
    assert (
        size <= kv_bytes_per_token(mixed, 2) * context + state_bytes_per_sequence(mixed, 2) + 1e-6
    )


def test_a_verified_token_needs_a_slot_and_a_state_of_its_own() -> None:
    mixed = model(WHOLE, NARROW, DELTA)
    state = state_bytes_per_sequence(model(DELTA), 2)
    plain, drafting = (held_bytes(mixed.layer_kinds, 1000, 2, drafted) for drafted in (0, 3))
    assert drafting - plain == 3 * (2 * (2 * (8 + 5) * 2) + state)
