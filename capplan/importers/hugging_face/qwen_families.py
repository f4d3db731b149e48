"""The Qwen families."""

from dataclasses import replace
from functools import partial
from typing import Final

from capplan.importers.hugging_face import feed_forward, gqa, prediction, recurrent
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
_QWEN2 = Family(attention=partial(gqa.switched, form=_QWEN2_FORM), feed_forward=feed_forward.dense)
_QWEN3 = Family(attention=partial(gqa.switched, form=_QWEN3_FORM), feed_forward=feed_forward.dense)
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

QWEN: Final = {
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
