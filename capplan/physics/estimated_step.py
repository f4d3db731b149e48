"""Step time of any model on any GPU whose rates are known: rooflines, where nothing was timed.

T = host + Σ_layers (launches + weights and arithmetic + distinct experts + cache + sums) + head

Experts add reading and arithmetic, whose rows are padded to tiles, as in fits to timed layers
(moe_layer.py); other matrices take the longer of the two.

Far coarser than a step composed of timed kernels. What it is for is the ratio of two steps of one
deployment, in which errors of the rates mostly cancel.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from capplan.physics.cache import cache_by_kind
from capplan.physics.cache_reads import cache_read
from capplan.physics.experts import Routing, distinct_experts
from capplan.physics.load import Load
from capplan.physics.parameters import count_layers
from capplan.physics.sharding import Split, on_gpu
from capplan.physics.surface import Array
from capplan.records.architecture import Architecture, LayerKind, Moe

HOST_S: Final = 0.5e-3
"""Scheduling, sampling and launching of a step, as far as no kernel hides it: assumed."""
LAUNCH_S: Final = 3e-6
"""Of one kernel: 2 to 3 us before it moves bytes at full rate (Cohere's account of its own MoE)."""
KERNELS: Final = {"attention": 6, "dense": 4, "moe": 2}
"""Kernels of a layer beside the experts' own: norms, matrices, positions, cache, activation."""
EXPERTS_S: Final = 30e-6
"""Of a layer's routed experts whatever they read: median of 237 fits to NVIDIA's tables (12 to
136), aiconfigurator-core 0.12.0, Apache-2.0."""
TILE: Final = 16
"""Rows that an expert's tokens are padded to; its last tile is half full on average."""
READ: Final = 0.85
"""Part of the bandwidth that kernels reach: 0.75 to 0.90 in the same fits."""
COMPUTE: Final = 0.65
"""Part of the arithmetic rate that kernels reach."""


@dataclass(frozen=True)
class Rates:
    """What a GPU is sold for, and how it reaches the others."""

    bandwidth_bytes_per_s: float
    flop_per_s: float
    """Dense, in 16 bits."""
    link_bytes_per_s: float
    """To another GPU, one way."""
    link_s: float
    """Of a sum over GPUs, however small."""


@dataclass(frozen=True)
class EstimatedStep:
    """T(B, q, c) of one deployment without prefill."""

    model: Architecture
    split: Split
    rates: Rates
    bytes_per_weight: float
    bytes_per_expert_weight: float
    """Of the routed experts."""
    host_s: float = HOST_S
    bytes_per_cached: float = 2.0

    def step_s(self, load: Load, routing: Routing | None) -> Array:
        """Time of a step [s], shape of the load.

        Args:
            load: Without prefill, and with one context for all cells.
            routing: How tokens choose experts; None in a dense model.
        """
        total = np.full(load.batch.shape, self.host_s)
        for kind in on_gpu(self.model.layer_kinds, self.split):
            total += kind.layers * self._layer_s(kind, load, routing)
        return np.asarray(total + self.head_s(load))

    def head_s(self, load: Load) -> Array:
        """Time of the output head [s]."""
        rows = self.model.vocabulary / self.split.tensor * self.model.hidden_size
        return LAUNCH_S + self._product_s(rows, load.sampled_rows)

    def _layer_s(self, kind: LayerKind, load: Load, routing: Routing | None) -> Array:
        one = kind.model_copy(update={"layers": 1})
        counted = count_layers((one,), self.model.hidden_size)
        always = counted.attention + counted.dense + counted.shared_experts + counted.router
        kernels = KERNELS["attention"] + KERNELS.get(kind.feed_forward.kind, 0)
        time_s = kernels * LAUNCH_S + self._product_s(always, load.tokens)
        if isinstance(kind.feed_forward, Moe) and routing is not None:
            each = counted.routed_experts / kind.feed_forward.experts
            touched = distinct_experts(routing, load.batch, load.query_tokens)
            moved_s = touched * each * self.bytes_per_expert_weight / self._read
            chosen = load.tokens * kind.feed_forward.experts_per_token
            rows = np.maximum(TILE * touched, chosen + TILE * touched / 2)
            time_s = time_s + EXPERTS_S + moved_s + rows * each * 2 / self._compute
        return np.asarray(time_s + self._cache_s(one, load) + self._sums_s(load))

    def _product_s(self, weights: float, rows: Array) -> Array:
        moved_s = weights * self.bytes_per_weight / self._read
        return np.maximum(moved_s, 2 * weights * rows / self._compute)

    def _cache_s(self, one: LayerKind, load: Load) -> Array:
        """Keys and values are read once; a state is read once and written for every query token."""
        read = cache_read((one,), float(load.context_tokens.max()), self.bytes_per_cached)
        state = cache_by_kind((one,), self.bytes_per_cached)[0].state_bytes
        moved = load.batch * (read.read_bytes + (load.query_tokens - 1) * state)
        return np.maximum(moved / self._read, load.tokens * read.flop / self._compute)

    def _sums_s(self, load: Load) -> Array:
        """Two sums a layer over the GPUs of a tensor-parallel group."""
        gpus = self.split.tensor
        if gpus == 1:
            return np.zeros(load.batch.shape)
        moved = 2 * (gpus - 1) / gpus * load.tokens * self.model.hidden_size * 2
        return 2 * (self.rates.link_s + moved / self.rates.link_bytes_per_s)

    @property
    def _read(self) -> float:
        return READ * self.rates.bandwidth_bytes_per_s

    @property
    def _compute(self) -> float:
        return COMPUTE * self.rates.flop_per_s
