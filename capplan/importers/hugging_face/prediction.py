"""Heads for multi-token prediction that come with a checkpoint.

They draft, so they count in memory and not in the model's totals. The embedding and the output head
are the model's own: checkpoints may hold them twice, servers do not.
"""

from typing import Final

from capplan.importers.hugging_face import compressed, hybrids
from capplan.importers.hugging_face.keys import Keys
from capplan.records.architecture import DraftHead, LayerKind

NORMS: Final = 3
"""Of the embedding, of the hidden state, and before the output head."""
MOST_COPIES: Final = 100


def next_tokens(keys: Keys, layers: list[LayerKind]) -> DraftHead | None:
    """DeepSeek-V3's: a last layer behind a matrix that joins embedding and hidden state."""
    copies = keys.size("num_nextn_predict_layers", default=0, least=0, most=MOST_COPIES)
    return _head(keys, (layers[-1],), copies)


def qwen(keys: Keys, layers: list[LayerKind]) -> DraftHead | None:
    """Qwen3.5's: the last layer that has attention to everything."""
    if keys.flag("mtp_use_dedicated_embeddings", default=False):
        keys.complain("mtp_use_dedicated_embeddings", "an embedding for drafting is not known")
    copies = keys.size("mtp_num_hidden_layers", default=0, least=0, most=MOST_COPIES)
    full = [kind for kind in layers if kind.attention.kind != "delta_net"]
    return _head(keys, (full[-1] if full else layers[-1],), copies)


def minimax(keys: Keys, layers: list[LayerKind]) -> DraftHead | None:
    """MiniMax': num_mtp_modules of mtp_transformer_layers each."""
    keys.raw("num_nextn_predict_layers")  # how many of the modules engines run
    if not keys.flag("use_mtp", default=True):
        return None
    copies = keys.size("num_mtp_modules", default=0, least=0, most=MOST_COPIES)
    each = keys.size("mtp_transformer_layers", default=1, most=MOST_COPIES)
    return _head(keys, (layers[-1],) * each, copies)


def nemotron(keys: Keys, _layers: list[LayerKind]) -> DraftHead | None:
    """Nemotron-3's: a pattern of its own."""
    copies = keys.size("num_nextn_predict_layers", default=0, least=0, most=MOST_COPIES)
    if copies == 0:
        return None
    blocks = hybrids.layers_of(keys, hybrids.prediction_blocks(keys))
    kinds = [
        LayerKind(layers=1, attention=attention, feed_forward=feed_forward, norms=1)
        for attention, feed_forward in blocks
    ]
    return _head(keys, tuple(kinds), copies)


def windowed(keys: Keys, layers: list[LayerKind]) -> DraftHead | None:
    """DeepSeek-V4's: a layer without compression."""
    copies = keys.size("num_nextn_predict_layers", default=0, least=0, most=MOST_COPIES)
    kind = layers[-1].model_copy(update={"attention": compressed.window_only(keys)})
    return _head(keys, (kind,), copies)


def dspark(keys: Keys, layers: list[LayerKind]) -> DraftHead | None:
    """DeepSeek-V4.1's: layers with fewer experts that draft a block of tokens in one pass."""
    count = keys.size("num_nextn_predict_layers", default=0, least=0, most=MOST_COPIES)
    if count == 0:
        return None
    hidden, rank = keys.size("hidden_size"), keys.size("dspark_markov_rank")
    experts, chosen = (
        keys.size(key) for key in ("dspark_n_routed_experts", "dspark_num_experts_per_tok")
    )
    if chosen > experts:
        keys.complain("dspark_num_experts_per_tok", f"must not exceed {experts}")
    layer = layers[-1]
    fewer = layer.feed_forward.model_copy(update={"experts": experts, "experts_per_token": chosen})
    kind = LayerKind(
        layers=count, attention=compressed.window_only(keys), feed_forward=fewer, norms=layer.norms
    )
    return DraftHead(
        kind="dspark",
        layer_kinds=(kind,),
        draft_tokens=keys.size("dspark_block_size"),
        joined_size=hidden * max(1, len(keys.whole_numbers("dspark_target_layer_ids"))),
        norms=2,
        other_parameters=2 * keys.size("vocab_size") * rank + hidden + rank,
    )


def _head(keys: Keys, kinds: tuple[LayerKind, ...], copies: int) -> DraftHead | None:
    if copies == 0:
        return None
    return DraftHead(
        kind="mtp",
        layer_kinds=tuple(kind.model_copy(update={"layers": 1}) for kind in kinds),
        copies=copies,
        joined_size=2 * keys.size("hidden_size"),
        norms=NORMS,
    )
