"""Which of our models a published checkpoint is."""

import re
from collections.abc import Collection
from typing import Final

SAME_SHAPE: Final = {
    "deepseek-v3.1": "deepseek-v3",
    "llama-3.3-70b": "llama-3.1-70b",
}
"""Later checkpoints whose layers have the dimensions of an earlier one."""
_TAIL: Final = re.compile(
    r"-(instruct|it|chat|hf|thinking|fp8|fp4|nvfp4|bf16|mxfp4|int4|awq|gptq|dynamic|kv|v2|\d{4})$"
)
"""What makers add to a name: tuning, precision, month. The dimensions stay."""


def known_model(checkpoint: str, known: Collection[str]) -> str | None:
    """The model's name here, or None.

    >>> known_model("nvidia/Llama-3.1-8B-Instruct-FP8", ["llama-3.1-8b"])
    'llama-3.1-8b'
    """
    name = checkpoint.rsplit("/", 1)[-1].lower().removeprefix("meta-")
    while True:
        name = SAME_SHAPE.get(name, name)
        if name in known:
            return name
        shorter = _TAIL.sub("", name)
        if shorter == name:
            return None
        name = shorter
