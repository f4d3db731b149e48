"""Step time of a deployment, composed of published times of its parts.

T = fixed + Σ_layers (attention + sparse or dense feed-forward + all-reduces + small kernels) + head

Kernel times added up are a prior, not a measurement: gaps between kernels, skewed routing and
waiting of GPUs for one another are missing, so the sum is rather short than long.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capplan.physics.attention import Attention
from capplan.physics.experts import Routing, distinct_experts
from capplan.physics.load import Load
from capplan.physics.roofline import Curve, Kernel, Roofline
from capplan.physics.surface import Array
from capplan.records.caveat import Source


@dataclass(frozen=True)
class SparseKernel:
    """The routed experts of one layer on one GPU: T = a + b·U + e·max(0, tokens − tile).

    Source:
        The form follows NVIDIA's silicon tables (aiconfigurator-core 0.12.0, Apache-2.0); a profile
        composed of such a fit says how far it lies off its rows. Huang et al. (MoESD, arXiv
        2505.19645) have the term b·U without the constant.
    """

    routing: Routing
    constant_s: float
    expert_s: float
    """Reading one more expert. [s]"""
    token_s: float
    """Arithmetic of one more token beyond the tile. [s/token]"""
    tile_tokens: float
    source: Source

    def distinct(self, load: Load) -> Array:
        """Distinct experts of the step, shape of the load."""
        return distinct_experts(self.routing, load.batch, load.query_tokens, load.prefill_tokens)

    def at(self, load: Load) -> Array:
        """Time of one layer's routed experts [s], shape of the load."""
        beyond = np.maximum(0, load.tokens - self.tile_tokens)
        return np.asarray(
            self.constant_s + self.expert_s * self.distinct(load) + self.token_s * beyond
        )


@dataclass(frozen=True)
class LayerCost:
    """Layers that are alike, beside their attention and all-reduces."""

    layers: int
    kernels: tuple[Kernel, ...]
    """Each runs once a layer on all tokens of the step."""
    sparse: SparseKernel | None = None

    def at(self, load: Load) -> Array:
        """Time of one such layer [s]."""
        dense_s = sum((kernel.at(load.tokens) for kernel in self.kernels), np.zeros(()))
        return np.asarray(dense_s if self.sparse is None else dense_s + self.sparse.at(load))


@dataclass(frozen=True)
class AllReduce:
    """Sums over the replica's GPUs, after attention and after the feed-forward of each layer."""

    curve: Curve
    """By elements of the summed tensor."""
    hidden_size: int
    per_layer: int = 2

    def at(self, tokens: ArrayLike) -> Array:
        """Time of one layer's sums [s]."""
        return self.per_layer * self.curve.at(np.multiply(tokens, self.hidden_size))


@dataclass(frozen=True)
class Composition:
    """All terms of a step of one deployment; times are those of one GPU."""

    fixed_s: float
    """Host, sampling and scheduling that no kernel hides."""
    fixed_source: Source
    layers: tuple[LayerCost, ...]
    attention: Attention
    all_reduce: AllReduce
    head: Kernel

    @property
    def sparse(self) -> SparseKernel | None:
        """The sparse layers' kernel; None in a dense model."""
        return next((cost.sparse for cost in self.layers if cost.sparse is not None), None)

    def sources(
        self, *, decode: bool = True, prefill: bool = True, cached: bool = True
    ) -> tuple[Source, ...]:
        """Where the terms of a step come from, each once.

        Args:
            decode: Whether the step decodes or verifies.
            prefill: Whether it holds a prefill chunk.
            cached: Whether that chunk finds tokens in the cache.
        """
        kernels = [kernel for cost in self.layers for kernel in cost.kernels]
        sparse = () if self.sparse is None else (self.sparse.source,)
        attention = (
            *self.attention.sources,
            *(self.attention.decode_sources if decode else ()),
            *(self.attention.prefill_sources if prefill else ()),
            *(self.attention.cached_sources if prefill and cached else ()),
        )
        named = (kernel.source for kernel in (*kernels, self.all_reduce.curve, self.head))
        return _unique((*sparse, *attention, *named, self.fixed_source))

    def sparse_s(self, load: Load) -> Array:
        """The part of a step that the routed experts of all layers take [s]."""
        sparse = ((cost.layers, cost.sparse) for cost in self.layers)
        return np.asarray(
            sum((layers * one.at(load) for layers, one in sparse if one), np.zeros(()))
        )


def step_s(composition: Composition, load: Load) -> Array:
    """Time of a step [s], shape of the load.

    Raises:
        ValueError: The load leaves a table that a term is read from.
    """
    shared_s = composition.attention.at(load) + composition.all_reduce.at(load.tokens)
    layers_s = sum(
        (cost.layers * (cost.at(load) + shared_s) for cost in composition.layers), np.zeros(())
    )
    return np.asarray(composition.fixed_s + layers_s + composition.head.at(load.sampled_rows))


@dataclass(frozen=True)
class DraftHead:
    """An autoregressive drafter of one decoder layer, such as EAGLE-3.

    A round runs the layer over the batch · (draft_tokens + 1) tokens just verified, which yields
    the first draft, then once a further draft over the batch.
    """

    round_s: float
    """Rejection sampling and preparing inputs, once a round."""
    round_source: Source
    fuse: Roofline
    """Joins features of the target's layers, once a round."""
    layer: Roofline
    """Matrices and small kernels of the decoder layer, its attention kernel's start included."""
    head: Roofline
    kv_s: float
    """Reading the drafter's cache of one token of one sequence. [s/token]"""
    all_reduce: AllReduce

    def sources(self) -> tuple[Source, ...]:
        """Where the terms come from, each once."""
        named = (self.fuse.source, self.layer.source, self.head.source)
        return _unique((*named, self.all_reduce.curve.source, self.round_source))


def draft_s(drafter: DraftHead, load: Load) -> Array:
    """Time of one round's drafting [s]; the load is that of the verification step."""
    passes = load.query_tokens - 1
    read_s = drafter.kv_s * load.batch * load.context_tokens
    verified, batch = load.decode_tokens, load.batch
    first_s = drafter.layer.at(verified) + drafter.all_reduce.at(verified)
    later_s = drafter.layer.at(batch) + drafter.all_reduce.at(batch)
    once_s = drafter.round_s + drafter.fuse.at(verified) + first_s
    each_s = drafter.head.at(batch) + read_s
    return np.asarray(once_s + passes * each_s + (passes - 1) * later_s)


def _unique(sources: Iterable[Source]) -> tuple[Source, ...]:
    return tuple({source.model_dump_json(): source for source in sources}.values())
