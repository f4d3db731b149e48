"""Attention to a cached context and to the step's own tokens, in two parts.

Every query sees the whole cached context, so that part needs no mask: queries of heads that share
keys become rows of one matrix, and the cache is read once for all of them, whatever the number of
queries. Only among the step's own tokens is there an order. Both parts are joined by the
logarithms of their sums of exponentials.

Source:
    Dao et al., FlashDecoding (2023) for the joining; DeepSeek-V2 (arXiv 2405.04434), section 2.1,
    for latent attention as one key-value head that all heads share.
"""

import math
from typing import Final

import torch
from torch import Tensor

FLASH_HEAD_SIZE: Final = 256
"""Largest head of the flash kernel on CUDA."""


def attend(query: Tensor, context: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor]) -> Tensor:
    """Attends to the context and, causally, to the step's own tokens.

    Args:
        query: [sequences, heads, tokens, key size], scaled already.
        context: Cached keys and values. [sequences, kv heads, context, key or value size]
        own: Keys and values of the step's tokens. [sequences, kv heads, tokens, size]

    Returns:
        [sequences, heads, tokens, value size]
    """
    heads, kv_heads = query.shape[1], own[0].shape[1]
    spread = [tensor.repeat_interleave(heads // kv_heads, dim=1) for tensor in own]
    near, near_sum = _softmax(query, spread[0], spread[1], causal=True)
    if not context[0].shape[2]:
        return near
    rows = query.reshape(query.shape[0], kv_heads, -1, query.shape[3])
    far, far_sum = _softmax(rows, *context, causal=False)
    share = torch.sigmoid(far_sum.reshape(near_sum.shape) - near_sum).unsqueeze(-1)
    return torch.lerp(near, far.reshape(near.shape), share.to(near.dtype))


def _softmax(query: Tensor, keys: Tensor, values: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    """Attention and the logarithm of its sum of exponentials. [..., value size], [...]."""
    aten = torch.ops.aten
    if keys.shape[3] != values.shape[3]:
        return _explicit(query, keys, values, causal=causal)
    if not query.is_cuda:
        flash = aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001
        out, log_sum = flash(query, keys, values, 0.0, causal, scale=1.0)
        return out, log_sum
    if query.dtype == torch.float32 or keys.shape[3] > FLASH_HEAD_SIZE:
        return _explicit(query, keys, values, causal=causal)
    flash = aten._scaled_dot_product_flash_attention  # noqa: SLF001
    out, log_sum = flash(query, keys, values, 0.0, causal, scale=1.0)[:2]
    return out, log_sum


def _explicit(
    query: Tensor, keys: Tensor, values: Tensor, *, causal: bool
) -> tuple[Tensor, Tensor]:
    """The same in plain matrix products, where no fused kernel takes the shapes."""
    scores = (query @ keys.transpose(-1, -2)).float()
    if causal:
        below = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~below, -math.inf)
    log_sum = scores.logsumexp(dim=-1)
    weights = (scores - log_sum.unsqueeze(-1)).exp().to(values.dtype)
    return weights @ values, log_sum
