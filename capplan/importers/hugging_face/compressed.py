"""Compressed attention.

Layers of DeepSeek-V4 compress for themselves, those of V4.1 read what a few of them compress.
"""

from typing import Final

from capplan.importers.hugging_face.keys import Keys
from capplan.records.architecture import LookupTable
from capplan.records.attention import Attention, Compressed, Compressor, Indexer

OVERLAPPING: Final = 4
"""The compression whose windows overlap, and which alone has an indexer, in V4's release."""


def every_layer(keys: Keys, layers: int) -> list[Attention]:
    """DeepSeek-V4: a compressor in each layer whose compress_ratio is not 0."""
    base = window_only(keys)
    kinds = {
        0: base,
        OVERLAPPING: base.model_copy(
            update={
                "compressor": Compressor(tokens_per_entry=OVERLAPPING, overlapping=True),
                "indexer": _indexer(keys, base).model_copy(
                    update={"tokens_per_key": OVERLAPPING, "pooling": "overlapping"}
                ),
                "read_tokens": keys.size("index_topk"),
            }
        ),
        128: base.model_copy(update={"compressor": Compressor(tokens_per_entry=128)}),
    }
    return [kinds[ratio] for ratio in _ratios(keys, layers, tuple(kinds))]


def few_layers(keys: Keys, layers: int) -> list[Attention]:
    """DeepSeek-V4.1: kv_source_layer_ids compress, index_source_layer_ids choose, others read."""
    base = window_only(keys)
    ratios = _ratios(keys, layers, (0, 1, 2))
    sources = _places(keys, "kv_source_layer_ids", layers)
    choosers = _places(keys, "index_source_layer_ids", layers)
    if not sources <= choosers:
        keys.complain("index_source_layer_ids", "needs every layer of kv_source_layer_ids too")
    for bound in ("candidate_source_layer_id", "candidate_topk_blocks", "candidate_block_size"):
        keys.size(bound)  # how far later indexers look: less work, not more memory
    topk = keys.size("index_topk")
    found: list[Attention] = []
    for layer, ratio in enumerate(ratios):
        changes = {
            "compressor": _source(ratio) if layer in sources and ratio else None,
            "indexer": _index(keys, base, max(1, ratio), layer in sources),
            "read_tokens": topk if ratio else None,
        }
        if layer not in choosers:
            del changes["indexer"]
        found.append(base.model_copy(update=changes))
    return found


def window_only(keys: Keys) -> Compressed:
    """A layer that sees its window and nothing beyond it."""
    if keys.flag("attention_bias", default=False):
        keys.complain("attention_bias", "biases of compressed attention are not known")
    keys.fixed("num_key_value_heads", 1)
    keys.size("qk_rope_head_dim")
    heads, groups = keys.size("num_attention_heads"), keys.size("o_groups")
    if heads % groups:
        keys.complain("o_groups", f"must divide num_attention_heads ({heads})")
    return Compressed(
        kind="compressed",
        heads=heads,
        head_size=keys.size("head_dim"),
        query_rank=keys.size("q_lora_rank"),
        output_rank=keys.size("o_lora_rank"),
        output_groups=groups,
        window_tokens=keys.size("sliding_window"),
    )


def lookup_tables(keys: Keys) -> tuple[LookupTable, ...]:
    """Engram's tables: rows that hashes of the last tokens point to."""
    rows = keys.whole_numbers("engram_num_embeddings")
    places = keys.whole_numbers("engram_layer_ids")
    if len(rows) != len(places) or any(count < 1 for count in rows):
        keys.complain("engram_num_embeddings", f"needs rows for each of {len(places)} layers")
        return ()
    for only_hashing in ("engram_vocab_size", "engram_compressed_vocab_size"):
        keys.raw(only_hashing)
    orders = keys.size("engram_max_ngram_size", least=2, most=1000) - 1
    hashes = orders * keys.size("engram_n_heads", most=1000)
    width = keys.size("engram_head_dim")
    return tuple(LookupTable(entries=count, width=width, hashes=hashes) for count in rows)


def _source(ratio: int) -> Compressor:
    return Compressor(tokens_per_entry=ratio, gated=ratio > 1, positions=False)


def _index(keys: Keys, base: Compressed, ratio: int, own: bool) -> Indexer:
    changes = {"tokens_per_key": ratio, "own_keys": own, "key_input": base.head_size}
    return _indexer(keys, base).model_copy(update=changes)


def _indexer(keys: Keys, base: Compressed) -> Indexer:
    return Indexer(
        heads=keys.size("index_n_heads"),
        head_size=keys.size("index_head_dim"),
        query_rank=base.query_rank,
    )


def _ratios(keys: Keys, layers: int, known: tuple[int, ...]) -> list[int]:
    """Of the model's layers; those of its prediction head follow and have windows only."""
    more = keys.size("num_nextn_predict_layers", default=0, least=0, most=1000)
    ratios: list[int] = keys.by_layer("compress_ratios", layers + more, known)
    if any(ratios[layers:]):
        keys.complain("compress_ratios", "prediction layers are known with windows (0) only")
    return ratios[:layers]


def _places(keys: Keys, key: str, layers: int) -> set[int]:
    places = set(keys.whole_numbers(key))
    if not places <= set(range(layers)):
        keys.complain(key, f"needs numbers of layers, from 0 to {layers - 1}")
    return places
