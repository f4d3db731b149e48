"""Listens to which experts a model sends its tokens to.

In transformers a layer hands its experts the choices that were made, whatever rule made them
(groups, biases, plain top-k), so that is where they are read.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from capplan.errors import Complaint, InputError
from capplan.physics.overlap import Choices

EXPERT_COUNTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
"""Names that configurations have for the experts of a layer."""


@dataclass
class Watch:
    """Choices of the pass that runs, layer by layer."""

    seen: dict[str, Tensor] = field(default_factory=dict)

    def take(self) -> Choices:
        """The choices of the last pass, [tokens, layers, experts_per_token], then forgotten."""
        layers = list(self.seen.values())
        self.seen = {}
        return np.stack([layer.cpu().numpy().astype(np.int64) for layer in layers], axis=1)


@contextmanager
def watching(model: Any) -> Iterator[Watch]:
    """Hooks on every module that is handed choices of experts."""
    watch = Watch()
    hooks = [
        module.register_forward_pre_hook(_listener(watch, name), with_kwargs=True)
        for name, module in model.named_modules()
        if type(module).__name__.endswith("Experts") or name.endswith(".experts")
    ]
    try:
        yield watch
    finally:
        for hook in hooks:
            hook.remove()


def choices(model: Any, tokens: Sequence[int], first: int = 0) -> Choices:
    """Experts that a text's tokens choose.

    Args:
        model: A causal language model of transformers.
        tokens: The whole text.
        first: Tokens that are read but not looked at.

    Returns:
        [tokens - first, layers with experts, experts_per_token]

    Raises:
        InputError: The model has no experts, or does not show which were chosen.
    """
    with watching(model) as watch, torch.inference_mode():
        model(input_ids=torch.tensor([tokens], device=model.device), use_cache=False)
        if not watch.seen:
            rule = "has no routed experts whose choices transformers shows"
            raise InputError([Complaint("CHECKPOINT", "", rule, type(model).__name__)])
        return watch.take()[first:]


def experts_of(model: Any) -> int:
    """Routed experts of a layer, by the configuration.

    Raises:
        InputError: It does not say.
    """
    config = model.config.get_text_config()
    for name in EXPERT_COUNTS:
        count = getattr(config, name, None)
        if isinstance(count, int) and count > 0:
            return count
    rule = f"needs one of {', '.join(EXPERT_COUNTS)} in its config.json"
    raise InputError([Complaint("CHECKPOINT", "", rule, type(model).__name__)])


def _listener(watch: Watch, name: str) -> Any:
    def listen(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        for value in (*arguments, *named.values()):
            if isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32):
                watch.seen[name] = value.detach().reshape(-1, value.shape[-1])
                return

    return listen
