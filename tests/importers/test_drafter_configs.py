"""Drafters' configurations: the keys that decide their size, as sgl-project/SpecForge's files
have them, against sizes of released checkpoints and against sums done by hand."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.importers.hugging_face.drafter import KINDS, drafter
from capplan.physics.cache import draft_kv_bytes_per_token
from capplan.physics.parameters import count_head
from capplan.records.drafter_model import DrafterModel

BF16 = 2
LLAMA_8B_EAGLE3 = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "draft_vocab_size": 32000,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 2048,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 1,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "vocab_size": 128256,
}
QWEN3_8B_DFLASH = {
    "architectures": ["DFlashDraftModel"],
    "attention_bias": False,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
    "dtype": "bfloat16",
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "layer_types": ["full_attention"] * 5,
    "max_position_embeddings": 40960,
    "max_window_layers": 5,
    "model_type": "qwen3",
    "num_attention_heads": 32,
    "num_hidden_layers": 5,
    "num_key_value_heads": 8,
    "num_target_layers": 36,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
QWEN3_8B_DSPARK = QWEN3_8B_DFLASH | {
    "architectures": ["DSparkDraftModel"],
    "block_size": 7,
    "dflash_config": {
        "attention_mode": "gqa",
        "confidence_head_alpha": 1.0,
        "confidence_head_with_markov": True,
        "enable_confidence_head": True,
        "markov_head_type": "vanilla",
        "markov_rank": 256,
        "mask_token_id": 151669,
        "projector_type": "dspark",
        "target_layer_ids": [1, 9, 17, 25, 33],
    },
}
QWEN3_8B_DOMINO = QWEN3_8B_DFLASH | {
    "architectures": ["DominoDraftModel"],
    "emb_dim": 256,
    "dflash_config": {
        "emb_dim": 256,
        "gru_hidden_dim": 1024,
        "mask_token_id": 151669,
        "projector_type": "domino",
        "pure_draft_prefix_len": 1,
        "shift_label": True,
        "target_layer_ids": [1, 9, 17, 25, 33],
    },
}
QWEN3_8B_PEAGLE = LLAMA_8B_EAGLE3 | {
    "architectures": ["PEagleDraftModel"],
    "head_dim": 128,
    "intermediate_size": 12288,
    "num_hidden_layers": 4,
    "vocab_size": 151936,
}
VICUNA_MEDUSA = {
    "architectures": ["MedusaModel"],
    "hidden_size": 4096,
    "model_type": "medusa",
    "num_heads": 5,
    "num_hidden_layers": 1,
    "torch_dtype": "float16",
    "vocab_size": 32000,
}
ALL = [
    LLAMA_8B_EAGLE3,
    QWEN3_8B_DFLASH,
    QWEN3_8B_DSPARK,
    QWEN3_8B_DOMINO,
    QWEN3_8B_PEAGLE,
    VICUNA_MEDUSA,
]
HIDDEN = 4096
LAYER = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 12288 + 2 * 4096 + 2 * 128
"""Of Qwen3-8B: queries, keys, values, output, gated feed-forward, norms."""


def read(tree: Any) -> DrafterModel:
    return drafter(tree, "test", lambda path: f"config.json:{'.'.join(map(str, path))}")


def size(tree: Any) -> int:
    return count_head(read(tree).head, HIDDEN)


def complaints(tree: Any) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        read(tree)
    return {complaint.key: str(complaint) for complaint in caught.value.complaints}


def test_eagle3_is_as_large_as_its_checkpoint() -> None:
    # pytorch_model.bin of yuhuili/EAGLE3-LLaMA3.1-Instruct-8B has 850 MB, in 16 bits.
    assert size(LLAMA_8B_EAGLE3) * 2 == pytest.approx(850e6, rel=0.01)


def test_eagle3_by_hand() -> None:
    attention = 2 * 4096 * (4096 + 2 * 1024) + 4096 * 4096
    rest = 3 * 4096 * 14336 + 3 * 4096 * 4096 + 32000 * 4096 + 4 * 4096
    assert size(LLAMA_8B_EAGLE3) == attention + rest
    head = read(LLAMA_8B_EAGLE3).head
    assert (head.kind, head.head_rows, head.token_map_rows) == ("eagle3", 32000, 128256)
    assert draft_kv_bytes_per_token(head, BF16) == 2 * 8 * 128 * 2


def test_eagle3_is_known_by_its_small_vocabulary_too() -> None:
    assert read(LLAMA_8B_EAGLE3 | {"architectures": ["LlamaForCausalLM"]}).head.kind == "eagle3"


def test_a_drafter_smaller_than_its_target_has_an_embedding_of_its_own() -> None:
    small = read(LLAMA_8B_EAGLE3 | {"target_hidden_size": 8192}).head
    assert small.embedding_rows == 128256
    assert small.joined_size == 3 * 8192


def test_p_eagle_has_plain_layers_behind_the_first() -> None:
    layer = LAYER - 2 * 128
    assert size(QWEN3_8B_PEAGLE) == (
        4 * layer
        + 4096 * (4096 + 2 * 1024)  # the first sees the embedding too
        + 4096  # and normalises it
        + 3 * 4096 * 4096
        + 3 * 4096  # stands for states that are not there yet
        + 4096
        + 32000 * 4096
    )


def test_dflash_by_hand_and_by_its_card() -> None:
    assert size(QWEN3_8B_DFLASH) == 5 * LAYER + 5 * 4096 * 4096 + 2 * 4096
    assert size(QWEN3_8B_DFLASH) == pytest.approx(1.05e9, rel=0.01)  # z-lab/Qwen3-8B-DFlash-b16
    head = read(QWEN3_8B_DFLASH).head
    assert (head.draft_tokens, [kind.layers for kind in head.layer_kinds]) == (16, [5])
    assert draft_kv_bytes_per_token(head, BF16) == 5 * 2 * 8 * 128 * 2


def test_dspark_adds_a_markov_and_a_confidence_head() -> None:
    added = 2 * 151936 * 256 + 4096 + 256 + 1
    assert size(QWEN3_8B_DSPARK) - size(QWEN3_8B_DFLASH) == added


def test_domino_adds_a_recurrent_unit_and_a_low_rank_head() -> None:
    added = 3 * 1024 * (4096 + 1024) + (4096 + 1024) * 256 + 256 * 151936
    assert size(QWEN3_8B_DOMINO) - size(QWEN3_8B_DFLASH) == added


def test_medusa_has_an_output_head_a_head() -> None:
    assert size(VICUNA_MEDUSA) == 5 * (4096 * 4096 + 4096 + 32000 * 4096)
    assert draft_kv_bytes_per_token(read(VICUNA_MEDUSA).head, BF16) == 0


def test_windows_of_a_drafter_do_not_grow() -> None:
    types = ["sliding_attention"] * 4 + ["full_attention"]
    tree = QWEN3_8B_DFLASH | {
        "layer_types": types,
        "sliding_window": 2048,
        "use_sliding_window": True,
    }
    head = read(tree).head
    assert [kind.layers for kind in head.layer_kinds] == [4, 1]
    assert draft_kv_bytes_per_token(head, BF16) == 2 * 8 * 128 * 2


@pytest.mark.parametrize(
    ("tree", "key", "words"),
    [
        ({}, "architectures", "Known: dflash"),
        ([], "", "needs a mapping"),
        (
            LLAMA_8B_EAGLE3 | {"architectures": ["GPT2"], "draft_vocab_size": None},
            "architectures",
            "Known",
        ),
        (LLAMA_8B_EAGLE3 | {"hidden_size": "big"}, "hidden_size", "whole number"),
        (LLAMA_8B_EAGLE3 | {"num_experts": 8}, "num_experts", "may change"),
        (QWEN3_8B_DFLASH | {"dflash_config": {}}, "dflash_config.target_layer_ids", "missing"),
        (QWEN3_8B_DFLASH | {"dflash_config": 3}, "dflash_config", "needs a mapping"),
        (
            QWEN3_8B_DSPARK | {"dflash_config": {"projector_type": "new"}},
            "dflash_config.projector_type",
            "needs one of dspark",
        ),
        ({"medusa_num_heads": 3, "medusa_num_layers": 1}, "hidden_size", "missing"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(tree: Any, key: str, words: str) -> None:
    assert words in complaints(tree)[key]


def test_there_is_an_example_of_every_kind() -> None:
    assert {read(tree).head.kind for tree in ALL} == set(KINDS)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-2, 2), max_size=4),
    st.just({}),
)


@settings(max_examples=200, deadline=None)
@given(tree=st.sampled_from(ALL), data=st.data())
def test_a_mutated_configuration_is_read_or_refused(tree: dict[str, Any], data: Any) -> None:
    keys = data.draw(st.lists(st.sampled_from(sorted(tree)), max_size=4, unique=True))
    changed = tree | {key: data.draw(VALUES) for key in keys}
    try:
        found = read(changed)
    except InputError:
        return
    assert count_head(found.head, found.hidden_size) > 0
    assert DrafterModel.model_validate_json(found.model_dump_json()) == found
