"""Time of the routed experts of one layer, fitted to a published table of it.

T = r(n)·(a + b·U + Σ_m c_m·P_m + e·n) for n tokens, U distinct experts and P_m rows padded to tiles
of m: reading an expert costs b once, its tokens are worked off in tiles, moving tokens in and out
costs e each, and a is paid once. r carries what such a sum cannot: cliffs at certain sizes, where
an engine changes kernels. It is what the rows showed at their own sizes and one elsewhere would be.

Source:
    The terms a + b·U follow NVIDIA's silicon tables (aiconfigurator-core 0.12.0, Apache-2.0); MoESD
    (arXiv 2505.19645), section 3, has b·U without the constant. Tiles are those of grouped matrix
    products, such as `fused_moe` in vLLM, which pads each expert's tokens to whole blocks.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from capplan.physics.surface import Array
from capplan.physics.synthetic_routing import routed_counts

TILES: Final = np.array([16, 32, 64, 128, 256])
"""Rows of the tiles that kernels work in. The fit finds which of them a kernel takes."""


@dataclass(frozen=True)
class Routed:
    """What routed tokens ask of one GPU; arrays of one shape."""

    tokens: Array
    """Tokens that enter the layer, over all ranks."""
    distinct: Array
    """Experts of this GPU that got any."""
    padded_rows: Array
    """Their tokens, each expert's padded to whole tiles of each of `TILES`. [..., tiles]"""

    @classmethod
    def of_counts(cls, tokens: float, counts: ArrayLike) -> Self:
        """The mean of draws whose counts are known.

        Args:
            tokens: Tokens that enter the layer.
            counts: Tokens of each of this GPU's experts. [draws, experts]
        """
        drawn = np.asarray(counts)
        padded = [(-(-drawn // tile) * tile).sum(axis=-1).mean() for tile in TILES]
        return cls(
            np.asarray(tokens), np.asarray((drawn > 0).sum(axis=-1).mean()), np.array(padded)
        )

    @classmethod
    def of_totals(cls, tokens: ArrayLike, distinct: ArrayLike, rows: ArrayLike) -> Self:
        """What is to be expected where only totals are known.

        An expert's last tile is half full on average, once experts have more tokens than a tile.

        Args:
            tokens: Tokens that enter the layer.
            distinct: Experts of this GPU that get any.
            rows: Tokens that they get, each counted once an expert.
        """
        parts = np.broadcast_arrays(tokens, distinct, rows)
        entering, experts, work = (np.asarray(part, dtype=float) for part in parts)
        full = TILES * experts[..., None]
        return cls(entering, experts, np.maximum(full, work[..., None] + full / 2))

    @property
    def terms(self) -> Array:
        """The sum's terms beside its coefficients. [..., 3 + tiles]."""
        alone = np.stack([np.ones_like(self.distinct), self.distinct, self.tokens], axis=-1)
        return np.concatenate([alone, self.padded_rows], axis=-1)


@dataclass(frozen=True)
class MoeRows:
    """Rows of a table for one layer shape, kernel and GPU: expert-parallel widths may differ."""

    experts: int
    """Over all ranks."""
    experts_per_token: int
    tokens: NDArray[np.int64]
    """Over all ranks. [rows]"""
    ranks: NDArray[np.int64]
    """GPUs that share the experts out. [rows]"""
    distribution: NDArray[np.str_]
    """Synthetic routing, as `synthetic_routing.routed_counts` names it. [rows]"""
    time_s: Array
    """[rows]"""

    def of(self, chosen: NDArray[np.bool_]) -> "MoeRows":
        """Some of the rows."""
        return replace(
            self,
            tokens=self.tokens[chosen],
            ranks=self.ranks[chosen],
            distribution=self.distribution[chosen],
            time_s=self.time_s[chosen],
        )

    def terms(self) -> Array:
        """Terms of the sum for each row. [rows, 3 + tiles]."""
        layer = self.experts, self.experts_per_token
        places = zip(self.distribution, self.tokens, self.ranks, strict=True)
        return np.stack([_terms(str(d), int(n), *layer, int(ranks)) for d, n, ranks in places])


@lru_cache(maxsize=65536)
def _terms(
    distribution: str, tokens: int, experts: int, experts_per_token: int, ranks: int
) -> Array:
    """Terms of one row; layers of other kernels and GPUs share them. [3 + tiles]."""
    counts = routed_counts(distribution, tokens, experts, experts_per_token, ranks)
    return Routed.of_counts(tokens, counts).terms


@dataclass(frozen=True)
class MoeLayer:
    """Routed experts of one layer on the most loaded of `ranks` GPUs."""

    experts: int
    experts_per_token: int
    ranks: int
    coefficients_s: tuple[float, ...]
    """Of the constant, an expert, a token and a row in tiles of each width. [s]"""
    sizes: tuple[float, ...]
    """Tokens that rows were published for, rising."""
    over_sum: tuple[float, ...]
    """Published over summed time at those sizes."""

    def at(self, tokens: ArrayLike, distinct: ArrayLike, rows: ArrayLike | None = None) -> Array:
        """Time of the layer [s].

        Args:
            tokens: Tokens that enter the layer, over all ranks.
            distinct: Distinct experts that they touch on the most loaded GPU.
            rows: Tokens of that GPU's experts, each counted once an expert; an even share if None.

        Returns:
            Seconds, shape of the arguments broadcast.

        Raises:
            ValueError: More tokens than the table has, or fewer.
        """
        share = np.multiply(tokens, self.experts_per_token / self.ranks)
        return self.of(Routed.of_totals(tokens, distinct, share if rows is None else rows))

    def of(self, routed: Routed) -> Array:
        """Time of the layer [s], shape of the routed tokens; raises as `at` does."""
        low, high = self.sizes[0], self.sizes[-1]
        if np.any(routed.tokens < low) or np.any(routed.tokens > high):
            raise ValueError(
                f"{routed.tokens.min():g} to {routed.tokens.max():g} tokens leave the table of "
                f"the MoE layer, which covers {low:g} to {high:g}"
            )
        summed = routed.terms @ np.array(self.coefficients_s)
        return np.asarray(summed * np.interp(routed.tokens, self.sizes, self.over_sum))


def fit_moe_layer(rows: MoeRows, ranks: int, least_expert_s: float = 0.0) -> MoeLayer:
    """Fits a layer by least squares on relative error, no coefficient below nought.

    Rows of other expert-parallel widths tell work that grows with a rank's own share from work that
    grows with all tokens; within one width the two rise together.

    Args:
        rows: Table rows; at least those of `ranks`.
        ranks: Expert-parallel width to predict.
        least_expert_s: Least an expert can take to read: its bytes over the label's bandwidth. [s]

    Raises:
        ValueError: No row has this width.
    """
    own = rows.ranks == ranks
    if not own.any():
        raise ValueError(f"no row of the MoE table spreads the experts over {ranks} GPUs")
    terms = rows.terms()
    coefficients = _least_squares(terms, rows.time_s, least_expert_s)
    ratio = np.log(rows.time_s[own] / (terms[own] @ coefficients))
    sizes = np.unique(rows.tokens[own])
    over_sum = np.array([ratio[rows.tokens[own] == size].mean() for size in sizes])
    crowded = sizes * rows.experts_per_token / rows.experts > TILES[0]
    return MoeLayer(
        rows.experts,
        rows.experts_per_token,
        ranks,
        tuple(coefficients.tolist()),
        tuple(sizes.astype(float).tolist()),
        tuple(np.exp(np.where(crowded, _smooth(over_sum), over_sum)).tolist()),
    )


def _smooth(ratio: Array) -> Array:
    """Each size's ratio with half of its neighbours'.

    Where experts have tiles of tokens each, sizes of the table that fill them to the last row are
    lucky in a way that no other routing is; at fewer tokens the ratio is left as it was read.
    """
    return np.convolve(np.pad(ratio, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")


def _least_squares(terms: Array, time_s: Array, least_expert_s: float) -> Array:
    floor = np.zeros(terms.shape[-1])
    floor[1] = least_expert_s
    # Where no expert ever fills a tile, its rows rise with the experts alone: they are theirs.
    filled = (terms[:, -len(TILES) :] > TILES * terms[:, 1:2]).any(axis=0)
    told = np.append(np.ones(terms.shape[-1] - len(TILES), dtype=bool), filled)
    relative = terms / time_s[:, None]
    above = np.zeros(len(floor))
    above[told], _ = nnls(relative[:, told], 1 - relative @ floor)
    return floor + above


def moe_layer_errors(rows: MoeRows, fitted: str = "balanced") -> tuple[MoeRows, Array]:
    """Errors on routings that were not fitted.

    Args:
        rows: Rows of several routings.
        fitted: The routing that each width's layer is fitted to.

    Returns:
        The rows of other routings and, for each, predicted over published time less one.
    """
    known = rows.of(rows.distribution == fitted)
    tested = rows.of((rows.distribution != fitted) & np.isin(rows.ranks, known.ranks))
    predicted = np.empty(len(tested.time_s))
    for ranks in np.unique(tested.ranks):
        layer, here = fit_moe_layer(known, int(ranks)), tested.ranks == ranks
        parts = tested.of(here).terms()
        summed = parts @ np.array(layer.coefficients_s)
        predicted[here] = summed * np.interp(tested.tokens[here], layer.sizes, layer.over_sum)
    return tested, predicted / tested.time_s - 1
