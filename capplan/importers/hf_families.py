"""What each `model_type` of a Hugging Face configuration means without saying it."""

from dataclasses import dataclass, replace
from typing import Final, Literal

Window = Literal["where set", "unless null", "switched"]
"""A window on attention stands where sliding_window is set; the same, and where the key is missing;
or only where use_sliding_window is true."""


@dataclass(frozen=True)
class Family:
    """What a model type says without writing it."""

    experts_key: str | None = None
    """Key of the number of routed experts; None for dense families."""
    width_key: str = "moe_intermediate_size"
    latent_attention: bool = False
    head_size: int | None = None
    """Size of a head where the file gives none; None for hidden_size over heads."""
    head_norm: bool = False
    bias_key: str | None = None
    """Key that switches biases of query, key and value; None where the family has no choice."""
    bias_default: bool = False
    router_bias: bool = False
    window: Window = "where set"


_QWEN3 = Family(head_size=128, head_norm=True, bias_key="attention_bias", window="switched")
_DEEPSEEK = Family(experts_key="n_routed_experts", latent_attention=True)

FAMILIES: Final = {
    "llama": Family(bias_key="attention_bias"),
    "mistral": Family(window="unless null"),
    "mixtral": Family(experts_key="num_local_experts", width_key="intermediate_size"),
    "qwen2": Family(bias_default=True, window="switched"),
    "qwen2_moe": Family(
        experts_key="num_experts", bias_key="qkv_bias", bias_default=True, window="switched"
    ),
    "qwen3": _QWEN3,
    "qwen3_moe": replace(_QWEN3, experts_key="num_experts"),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": replace(_DEEPSEEK, router_bias=True),
    "kimi_k2": replace(_DEEPSEEK, router_bias=True),
}

NESTED: Final = ("kimi_k25",)
"""Types whose language model stands under text_config."""

REFUSED: Final = {
    "attn_type_list": "layers of several kinds of attention",
    "block_configs": "layers of different widths",
    "compress_ratios": "compressed attention",
    "full_attention_interval": "linear attention",
    "hybrid_override_pattern": "state-space layers",
    "index_topk": "sparse attention with an indexer",
    "layers_block_type": "state-space layers",
    "linear_attn_config": "linear attention",
    "linear_num_value_heads": "linear attention",
    "mlp_bias": "feed-forward biases",
    "moe_latent_size": "latent experts",
    "routed_expert_hidden_size": "latent experts",
    "sparse_attention_config": "sparse attention",
}
"""Keys that change what a step does in a way the Architecture record cannot say yet."""
