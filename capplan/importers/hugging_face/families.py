"""The model types that can be read.

Source: the families' configuration and modelling code in Hugging Face transformers, or with their
checkpoints where transformers has none.
"""

from typing import Final

from capplan.importers.hugging_face.family import Family
from capplan.importers.hugging_face.grouped_families import GROUPED
from capplan.importers.hugging_face.latent_families import LATENT
from capplan.importers.hugging_face.qwen_families import QWEN

FAMILIES: Final[dict[str, Family]] = {**GROUPED, **LATENT, **QWEN}

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
