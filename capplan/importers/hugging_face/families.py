"""The model types that can be read: for each, which readers its keys need.

Source: the families' configuration and modelling code in Hugging Face transformers, or with their
checkpoints where transformers has none.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from capplan.importers.hugging_face import (
    compressed,
    feed_forward,
    gqa,
    hybrids,
    latent,
    prediction,
    recurrent,
)
from capplan.importers.hugging_face.family import Family, Names
from capplan.importers.hugging_face.feed_forward import Sparse
from capplan.importers.hugging_face.gqa import Form

_LLAMA = Form(bias_key="attention_bias", output_bias=True)
_QWEN3_FORM = replace(_LLAMA, head_size=128, head_norm=True)
_QWEN2_FORM = Form(bias_key="qkv_bias", bias_default=True)
_GATED_FORM = replace(_LLAMA, head_norm=True, gate_key="attn_output_gate", gate_default=True)

_QWEN_EXPERTS = Sparse(("num_experts",))
_GATED_SHARED = replace(
    _QWEN_EXPERTS, shared="gated width", shared_key="shared_expert_intermediate_size"
)
_LOCAL_EXPERTS = Sparse(("num_local_experts",), width_key="intermediate_size")
_DEEPSEEK_EXPERTS = Sparse(shared="number", router_bias=True)

_LLAMA_LIKE = Family(attention=partial(gqa.alike, form=_LLAMA), feed_forward=feed_forward.dense)
_MISTRAL = Family(
    attention=partial(gqa.windowed, form=gqa.PLAIN, default=4096), feed_forward=feed_forward.dense
)
_QWEN2 = Family(
    attention=partial(gqa.switched, form=_QWEN2_FORM), feed_forward=feed_forward.dense
)
_QWEN3 = Family(
    attention=partial(gqa.switched, form=_QWEN3_FORM), feed_forward=feed_forward.dense
)
_QWEN3_MOE = replace(_QWEN3, feed_forward=partial(feed_forward.stepped, form=_QWEN_EXPERTS))
_QWEN_NAMES = Names(shared="mlp.shared_expert")
_QWEN3_NEXT = Family(
    attention=partial(
        recurrent.delta_net_hybrid, form=replace(_GATED_FORM, gate_key=None, gate_default=True)
    ),
    feed_forward=partial(feed_forward.stepped, form=_GATED_SHARED),
    names=_QWEN_NAMES,
    ignored=frozenset({"use_sliding_window"}),
)
_QWEN35 = Family(
    attention=partial(recurrent.delta_net_hybrid, form=_GATED_FORM),
    feed_forward=feed_forward.dense,
    prediction=prediction.qwen,
    names=_QWEN_NAMES,
    ignored=frozenset({"mlp_only_layers", "output_gate_type"}),
)
_QWEN35_MOE = replace(_QWEN35, feed_forward=partial(feed_forward.stepped, form=_GATED_SHARED))
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
_GLM4_MOE = Family(
    attention=partial(
        gqa.alike, form=Form(bias_key="attention_bias", head_norm=True, norm_key="use_qk_norm")
    ),
    feed_forward=partial(feed_forward.after_dense, form=_DEEPSEEK_EXPERTS),
    prediction=prediction.next_tokens,
)
_GEMMA = Form(head_size=256, bias_key="attention_bias", output_bias=True)
_GEMMA2 = Family(
    attention=partial(gqa.alternating, form=_GEMMA, every=2),
    feed_forward=feed_forward.dense,
    norms=4,
    tied=True,
    context=8192,
    ignored=frozenset({"sliding_window_size", "query_pre_attn_scalar"}),
)
_GEMMA3 = replace(
    _GEMMA2,
    attention=partial(
        gqa.alternating,
        form=replace(_GEMMA, head_norm=True),
        every=6,
        pattern_key="sliding_window_pattern",
    ),
    context=131_072,
)
_GEMMA4 = Family(
    attention=gqa.gemma4,
    feed_forward=feed_forward.beside_dense,
    norms=4,
    norms_beside_experts=3,
    names=Names(experts="experts", shared="mlp"),
    tied=True,
    ignored=frozenset({"vocab_size_per_layer_input", "use_bidirectional_attention"}),
)
_MINIMAX_EXPERTS = Sparse(
    ("num_local_experts",),
    width_key="intermediate_size",
    shared="width",
    shared_key="shared_intermediate_size",
    router_bias_key="use_routing_bias",
)

FAMILIES: Final = {
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
    "dots1": Family(
        attention=partial(gqa.alike, form=replace(_LLAMA, head_norm=True)),
        feed_forward=partial(feed_forward.after_dense, form=_DEEPSEEK_EXPERTS),
    ),
    "ernie4_5_moe": Family(
        attention=partial(gqa.alike, form=Form(bias_key="use_bias", output_bias=True)),
        feed_forward=partial(
            feed_forward.from_to,
            form=Sparse(
                ("moe_num_experts",),
                ("moe_k",),
                shared="number",
                shared_key="moe_num_shared_experts",
                router_bias=True,
            ),
        ),
        tied=True,
    ),
    "gemma2": _GEMMA2,
    "gemma3_text": _GEMMA3,
    "gemma4_text": _GEMMA4,
    "glm4_moe": _GLM4_MOE,
    "glm5_next_text": _GLM5_NEXT,
    "glm_moe_dsa": _SPARSE_MLA,
    "gpt_oss": Family(
        attention=partial(
            gqa.alternating, form=replace(_LLAMA, bias_default=True, head_size=64, sinks=True)
        ),
        feed_forward=partial(
            feed_forward.sparse,
            form=replace(
                _LOCAL_EXPERTS,
                chosen_keys=("num_experts_per_tok", "experts_per_token"),
                router_bias=True,
                expert_bias=True,
            ),
        ),
        ignored=frozenset({"initial_context_length"}),
    ),
    "granitemoe": Family(
        attention=partial(gqa.alike, form=_LLAMA),
        feed_forward=partial(feed_forward.sparse, form=_LOCAL_EXPERTS),
    ),
    "kimi_k2": _DEEPSEEK_V3,
    "kimi_linear": _KIMI_LINEAR,
    "llama": _LLAMA_LIKE,
    "llama4_text": Family(
        attention=partial(gqa.chunked, form=_LLAMA),
        feed_forward=partial(
            feed_forward.interleaved,
            form=replace(
                _LOCAL_EXPERTS,
                shared="width",
                shared_key="intermediate_size",
                dense_key="intermediate_size_mlp",
            ),
        ),
        ignored=frozenset({"use_qk_norm", "for_llm_compressor"}),  # its norm has no weights
    ),
    "mimo_v2_flash": Family(
        attention=gqa.two_shapes,
        feed_forward=partial(feed_forward.after_dense, form=_DEEPSEEK_EXPERTS),
    ),
    "minimax_m2": Family(
        attention=partial(
            gqa.alike, form=Form(head_size=128, whole_norm=True, norm_key="use_qk_norm")
        ),
        feed_forward=partial(feed_forward.sparse, form=_MINIMAX_EXPERTS),
        prediction=prediction.minimax,
        ignored=frozenset({"qk_norm_type"}),
    ),
    "minimax_m3": Family(
        attention=gqa.block_sparse,
        feed_forward=partial(
            feed_forward.after_dense,
            form=replace(_MINIMAX_EXPERTS, dense_key="dense_intermediate_size"),
        ),
        prediction=prediction.minimax,
        ignored=frozenset({"moe_intermediate_size", "n_shared_experts"}),
    ),
    "mistral": _MISTRAL,
    "mixtral": replace(
        _MISTRAL,
        attention=partial(gqa.windowed, form=gqa.PLAIN),
        feed_forward=partial(feed_forward.sparse, form=_LOCAL_EXPERTS),
    ),
    "mllama_text_model": replace(_LLAMA_LIKE, attention=gqa.with_images),
    "nemotron-nas": Family(layers=hybrids.nemotron_nas),
    "nemotron_h": Family(
        layers=hybrids.nemotron_h,
        names=Names("mixer", "mixer", "mixer", "mixer.experts", "mixer.shared_experts"),
        prediction=prediction.nemotron,
        ignored=frozenset({"expand", "chunk_size", "time_step_rank", "num_logits_to_keep"}),
    ),
    "olmoe": Family(
        attention=partial(gqa.alike, form=replace(_LLAMA, whole_norm=True)),
        feed_forward=partial(
            feed_forward.sparse, form=replace(_LOCAL_EXPERTS, experts_keys=("num_experts",))
        ),
    ),
    "phimoe": Family(
        attention=partial(gqa.windowed, form=_LLAMA),
        feed_forward=partial(feed_forward.sparse, form=_LOCAL_EXPERTS),
        norm_bias=True,
        head_bias_key="lm_head_bias",
    ),
    "qwen2": _QWEN2,
    "qwen2_moe": replace(_QWEN2, feed_forward=partial(feed_forward.stepped, form=_GATED_SHARED)),
    "qwen3": _QWEN3,
    "qwen3_5_moe_text": _QWEN35_MOE,
    "qwen3_5_text": _QWEN35,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "qwen3_vl_text": _QWEN3,
}

NESTED: Final = {
    "deepseek_v41": "deepseek_v41_text",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "glm5_next": "glm5_next_text",
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
    "llama4": "llama4_text",
    "mllama": "mllama_text_model",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
}
"""Types whose language model stands under text_config, with what it is called where it is not."""
