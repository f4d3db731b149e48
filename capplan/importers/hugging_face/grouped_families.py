"""Families with grouped queries, and hybrids of them with state-space layers."""

from dataclasses import replace
from functools import partial
from typing import Final

from capplan.importers.hugging_face import (
    feed_forward,
    gqa,
    hybrids,
    prediction,
    searched,
    special_gqa,
)
from capplan.importers.hugging_face.family import Family, Names
from capplan.importers.hugging_face.feed_forward import Sparse
from capplan.importers.hugging_face.gqa import Form

_LLAMA = Form(bias_key="attention_bias", output_bias=True)
_LOCAL_EXPERTS = Sparse(("num_local_experts",), width_key="intermediate_size")
_LLAMA_LIKE = Family(attention=partial(gqa.alike, form=_LLAMA), feed_forward=feed_forward.dense)
_MISTRAL = Family(
    attention=partial(gqa.windowed, form=gqa.PLAIN, default=4096), feed_forward=feed_forward.dense
)
_DEEPSEEK_EXPERTS = Sparse(shared="number", router_bias=True)
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
    attention=special_gqa.gemma4,
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

GROUPED: Final = {
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
    "llama": _LLAMA_LIKE,
    "llama4_text": Family(
        attention=partial(special_gqa.chunked, form=_LLAMA),
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
        attention=special_gqa.two_shapes,
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
        attention=special_gqa.block_sparse,
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
    "mllama_text_model": replace(_LLAMA_LIKE, attention=special_gqa.with_images),
    "nemotron-nas": Family(layers=searched.layers),
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
}
