"""Lighter versions of a model that draft for it: its first layers, or its weights in INT8."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from capplan.errors import Complaint, InputError

LARGEST = 127
"""Of a signed byte, both signs alike."""


def first_layers(model: Any, layers: int) -> Any:
    """The model with its first layers only, then its own norm and head; weights are shared.

    Args:
        model: A causal language model of transformers.
        layers: How many to keep.

    Raises:
        InputError: The model has no such layers, or no more than those.
    """
    decoder = model.get_decoder()
    stack = getattr(decoder, "layers", None)
    if not isinstance(stack, nn.ModuleList) or not layers < len(stack):
        depth = len(stack) if isinstance(stack, nn.ModuleList) else 0
        rule = f"needs fewer layers than the target's {depth}" if depth else "has no list of layers"
        raise InputError([Complaint("DRAFTER", "", rule, f"layers:{layers}")])
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    shallow = _replaced(decoder, layers=stack[:layers])
    shallow.config = config
    lighter = _replaced(model, **{model.base_model_prefix: shallow})
    lighter.config = config
    return lighter


def in_int8(model: Any) -> Any:
    """A copy whose matrices compute as INT8 engines do.

    Weights are rounded symmetrically by output channel, inputs by token as they come; products are
    of those rounded numbers, in the model's own width. The head stays as it is.

    Source:
        The scheme that vLLM serves as W8A8 with dynamic inputs (LLM.int8, arXiv 2208.07339,
        section 2, without outliers apart).
    """
    lighter = copy.deepcopy(model)
    head = lighter.get_output_embeddings()
    for module in lighter.modules():
        if isinstance(module, nn.Linear) and module is not head:
            module.weight = nn.Parameter(_rounded(module.weight.data), requires_grad=False)
            module.register_forward_pre_hook(_round_input)
    return lighter


def _replaced(module: Any, **children: nn.Module) -> Any:
    """A shallow copy of a module with other children under those names."""
    other = copy.copy(module)
    other._modules = module._modules | children  # noqa: SLF001
    return other


def _round_input(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (_rounded(inputs[0]), *inputs[1:])


def _rounded(rows: Tensor) -> Tensor:
    """Rows at 255 levels each, as numbers of the same width."""
    wide = rows.float()
    step = wide.abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
    step = step / LARGEST
    return ((wide / step).round() * step).to(rows.dtype)
