"""Attention layers in a model's real shapes, with random weights and a cache that is full already.

Rotary positions are left out: a few kernels over the step's own tokens, next to nothing beside
matrices and cache. Matrices are stored [in, out]; tokens of a step are the rows of one matrix, and
only attention looks at which sequence they belong to.
"""

import math
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from capplan.profiler.attention import attend
from capplan.profiler.grid import Part, Work
from capplan.profiler.maker import Maker, norm
from capplan.records.architecture import Gqa, Mla

ABSORB_UP_TO: Final = 16
"""Most tokens a sequence for which latent attention works in the latent space: verification."""


class GqaLayer:
    """Grouped-query attention."""

    def __init__(self, shape: Gqa, hidden: int, cache_tokens: int, make: Maker) -> None:
        self._shape = shape
        size, kv_heads = shape.head_size, shape.kv_heads
        width = (shape.heads + 2 * kv_heads) * size
        self._qkv = make.matrix(hidden, width)
        self._bias = make.normal(width) if shape.projection_bias else None
        self._norms = make.ones(size) if shape.head_norm else None
        self._out = make.matrix(shape.heads * size, hidden)
        self._cache = make.normal(2, cache_tokens * kv_heads * size)

    def __call__(self, hidden: Tensor, work: Work) -> Tensor:
        """Attends in every sequence. [tokens, hidden] -> [tokens, hidden]."""
        query, keys, values = self.project(hidden)
        rows = [part.sequences * part.tokens for part in work.parts]
        tensors = (query.split(rows), keys.split(rows), values.split(rows))
        mixed = map(self._one_part, work.parts, *tensors)
        return torch.cat(list(mixed)) @ self._out

    def project(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scaled queries, keys and values. [tokens, heads or kv heads, head size]."""
        shape = self._shape
        flat = hidden @ self._qkv
        flat = flat if self._bias is None else flat + self._bias
        heads = flat.view(len(hidden), -1, shape.head_size)
        query, keys, values = heads.split([shape.heads, shape.kv_heads, shape.kv_heads], dim=1)
        if self._norms is not None:
            query, keys = norm(query, self._norms), norm(keys, self._norms)
        return query / math.sqrt(shape.head_size), keys, values

    def context(self, part: Part) -> tuple[Tensor, Tensor]:
        """Cached keys and values. [sequences, kv heads, context, head size]."""
        shape = (part.sequences, self._shape.kv_heads, part.context_tokens, self._shape.head_size)
        keys, values = self._cache[:, : math.prod(shape)]
        return keys.view(shape), values.view(shape)

    def _one_part(self, part: Part, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        query, keys, values = (by_sequence(part, tensor) for tensor in (query, keys, values))
        return by_token(attend(query, self.context(part), (keys, values)))


class MlaLayer:
    """Latent attention: absorbed for decoding sequences, expanded for prompts, as engines do."""

    def __init__(self, shape: Mla, hidden: int, cache_tokens: int, make: Maker) -> None:
        self._shape = shape
        query_width = shape.heads * (shape.nope_head_size + shape.rope_head_size)
        self._query_down = make.matrix(hidden, shape.query_rank) if shape.query_rank else None
        self._query_norm = make.ones(shape.query_rank) if shape.query_rank else None
        self._query = make.matrix(shape.query_rank or hidden, query_width)
        self._down = make.matrix(hidden, shape.kv_rank + shape.rope_head_size)
        self._norm = make.ones(shape.kv_rank)
        self._key_up = make.matrix(shape.heads, shape.kv_rank, shape.nope_head_size)
        self._value_up = make.matrix(shape.heads, shape.kv_rank, shape.value_head_size)
        self._out = make.matrix(shape.heads * shape.value_head_size, hidden)
        self._cache = make.normal(cache_tokens, shape.kv_rank + shape.rope_head_size)

    def __call__(self, hidden: Tensor, work: Work) -> Tensor:
        """Attends in every sequence. [tokens, hidden] -> [tokens, hidden]."""
        query, latent = self.project(hidden)
        rows = [part.sequences * part.tokens for part in work.parts]
        mixed = map(self._one_part, work.parts, query.split(rows), latent.split(rows))
        return torch.cat(list(mixed)) @ self._out

    def project(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Scaled queries [tokens, heads, key size] and what is cached [tokens, rank + rope]."""
        shape = self._shape
        if self._query_down is None or self._query_norm is None:
            query = hidden @ self._query
        else:
            query = norm(hidden @ self._query_down, self._query_norm) @ self._query
        size = shape.nope_head_size + shape.rope_head_size
        latent, rope = (hidden @ self._down).split([shape.kv_rank, shape.rope_head_size], dim=1)
        cached = torch.cat([norm(latent, self._norm), rope], dim=1)
        return query.view(len(hidden), shape.heads, size) / math.sqrt(size), cached

    def context(self, part: Part) -> Tensor:
        """What is cached of the context. [sequences, 1, context, rank + rope]."""
        rows = self._cache[: part.sequences * part.context_tokens]
        return rows.view(part.sequences, 1, part.context_tokens, self._cache.shape[1])

    def _one_part(self, part: Part, query: Tensor, latent: Tensor) -> Tensor:
        mix = self.absorbed if part.tokens <= ABSORB_UP_TO else self.expanded
        return mix(part, by_sequence(part, query), by_sequence(part, latent[:, None]))

    def absorbed(self, part: Part, query: Tensor, own: Tensor) -> Tensor:
        """Queries go into the latent space; the cache serves all heads as it is."""
        rank = self._shape.kv_rank
        nope, rope = query.split([self._shape.nope_head_size, self._shape.rope_head_size], dim=3)
        latent_query = torch.cat([nope @ self._key_up.transpose(1, 2), rope], dim=3)
        context = self.context(part)
        both = [(latent, latent[..., :rank]) for latent in (context, own)]
        return by_token(attend(latent_query, *both) @ self._value_up)

    def expanded(self, part: Part, query: Tensor, own: Tensor) -> Tensor:
        """Keys and values of every head are made first, which costs less for many queries."""
        value_size = self._shape.value_head_size
        both = [self._expand(latent) for latent in (self.context(part), own)]
        return by_token(attend(query, *both)[..., :value_size])

    def _expand(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values; values padded to the keys' size, as the flash kernel wants them."""
        heads, rank = self._shape.heads, self._shape.kv_rank
        compressed, rope = latent[..., :rank], latent[..., rank:].expand(-1, heads, -1, -1)
        keys = torch.cat([compressed @ self._key_up, rope], dim=3)
        values = compressed @ self._value_up
        return keys, F.pad(values, (0, keys.shape[3] - values.shape[3]))


def by_sequence(part: Part, tensor: Tensor) -> Tensor:
    """[tokens of all, heads, size] -> [sequences, heads, tokens, size]."""
    return tensor.reshape(part.sequences, part.tokens, *tensor.shape[1:]).transpose(1, 2)


def by_token(mixed: Tensor) -> Tensor:
    """[sequences, heads, tokens, size] -> [tokens of all, heads * size]."""
    return mixed.transpose(1, 2).flatten(0, 1).flatten(1)
