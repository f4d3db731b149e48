"""Families with latent or compressed attention: DeepSeek, Kimi, GLM-5."""

from dataclasses import replace
from functools import partial
from typing import Final

from capplan.importers.hugging_face import compressed, feed_forward, latent, prediction, recurrent
from capplan.importers.hugging_face.family import Family
from capplan.importers.hugging_face.feed_forward import Sparse

_DEEPSEEK_EXPERTS = Sparse(shared="number", router_bias=True)
_DEEPSEEK_V3 = Family(
    attention=latent.dense,
    feed_forward=partial(feed_forward.after_dense, form=_DEEPSEEK_EXPERTS),
    prediction=prediction.next_tokens,
)
_DEEPSEEK_V2 = replace(
    _DEEPSEEK_V3,
    feed_forward=partial(feed_forward.after_dense, form=Sparse(shared="number")),
)
_SPARSE_MLA = replace(_DEEPSEEK_V3, attention=latent.sparse)
_DEEPSEEK_V4 = Family(
    attention=compressed.every_layer,
    feed_forward=partial(feed_forward.sparse, form=_DEEPSEEK_EXPERTS),
    prediction=prediction.windowed,
    streams_key="hc_mult",
    stream_head=True,
    # The first layers choose experts by a table of the vocabulary: whole numbers, not weights.
    ignored=frozenset({"num_hash_layers"}),
)
_KIMI_LINEAR = Family(
    attention=recurrent.kda_hybrid,
    feed_forward=partial(
        feed_forward.after_dense,
        form=replace(
            _DEEPSEEK_EXPERTS,
            experts_keys=("num_experts",),
            chosen_keys=("num_experts_per_token",),
            shared_key="num_shared_experts",
            latent_key="routed_expert_hidden_size",
            latent_norm_key="latent_moe_use_norm",
        ),
    ),
    prediction=prediction.next_tokens,
    residuals_key="attn_res_block_size",
)
_GLM5_NEXT = Family(
    attention=recurrent.sparse_kda_hybrid,
    feed_forward=partial(feed_forward.after_dense, form=_DEEPSEEK_EXPERTS),
    prediction=prediction.next_tokens,
    streams_key="hc_mult",
    ignored=frozenset({"mhc"}),
)

LATENT: Final = {
    "deepseek_ref": _DEEPSEEK_V4,
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v32": _SPARSE_MLA,
    "deepseek_v4": _DEEPSEEK_V4,
    "deepseek_v41_text": replace(
        _DEEPSEEK_V4,
        attention=compressed.few_layers,
        prediction=prediction.dspark,
        lookup_tables=compressed.lookup_tables,
        stream_head=False,
    ),
    "glm5_next_text": _GLM5_NEXT,
    "glm_moe_dsa": _SPARSE_MLA,
    "kimi_k2": _DEEPSEEK_V3,
    "kimi_linear": _KIMI_LINEAR,
}
