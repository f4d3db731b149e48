"""Latent attention (DeepSeek-V2 and after), and the indexers that make it sparse."""

from typing import Final

from capplan.importers.hugging_face.keys import Keys
from capplan.records.attention import Attention, Indexer, Mla

SPARSE: Final = "deepseek_sparse_attention"
OWN: Final = "full"
SHARED: Final = "shared"


def latent(keys: Keys) -> Mla:
    """One layer; a head_dim that dumps of transformers 5 add means the rotary part only."""
    if "q_lora_rank" not in keys:
        keys.complain("q_lora_rank", "needs the query's rank, or null where queries have none")
    if keys.flag("attention_bias", default=False):
        keys.complain("attention_bias", "biases of latent attention cannot be planned yet")
    for redundant in ("head_dim", "qk_head_dim", "num_key_value_heads"):
        keys.raw(redundant)
    return Mla(
        kind="mla",
        heads=keys.size("num_attention_heads"),
        query_rank=keys.size("q_lora_rank") if keys.given("q_lora_rank") else None,
        kv_rank=keys.size("kv_lora_rank"),
        nope_head_size=keys.size("qk_nope_head_dim"),
        rope_head_size=keys.size("qk_rope_head_dim", least=0),
        value_head_size=keys.size("v_head_dim"),
        output_gate=keys.flag("mla_use_output_gate", default=False),
    )


def dense(keys: Keys, layers: int) -> list[Attention]:
    """Every layer reads its whole cache."""
    return [latent(keys)] * layers


def sparse(keys: Keys, layers: int) -> list[Attention]:
    """An indexer chooses what is read; some layers take an earlier layer's choice (GLM-5.2)."""
    own = with_indexer(keys, latent(keys))
    if keys.given("layer_types"):
        keys.by_layer("layer_types", layers, (SPARSE,))
    shared = own.model_copy(update={"indexer": None})
    if not keys.given("indexer_types"):
        if keys.size("index_topk_freq", default=1) != 1 or keys.given("index_topk_pattern"):
            keys.complain("indexer_types", "needs which layers choose for themselves")
        return [own] * layers
    for restated in ("index_topk_freq", "index_topk_pattern", "index_skip_topk_offset"):
        keys.raw(restated)
    kinds = keys.by_layer("indexer_types", layers, (OWN, SHARED))
    if kinds[0] == SHARED:
        keys.complain("indexer_types", "the first layer has no earlier one to share with")
    return [own if kind == OWN else shared for kind in kinds]


def with_indexer(keys: Keys, attention: Mla) -> Mla:
    """The same attention reading index_topk tokens that an indexer of its own chooses."""
    pooled = keys.size("index_kpool", default=1)
    learned = pooled > 1 and keys.flag("index_kpool_compress", default=False)
    if pooled > 1 and not learned:
        keys.complain("index_kpool_compress", "keys pooled without weights are not known")
    indexer = Indexer(
        heads=keys.size("index_n_heads"),
        head_size=keys.size("index_head_dim"),
        query_rank=attention.query_rank,
        tokens_per_key=pooled,
        pooling="learned" if learned else "none",
    )
    return attention.model_copy(update={"indexer": indexer, "read_tokens": keys.size("index_topk")})
