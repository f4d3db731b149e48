"""Distinct routed experts that one step touches in a sparse layer.

A step reads each expert that at least one of its tokens chose, once. How many that are depends on
how alike the tokens choose: tokens of different sequences share popular experts, neighbours of one
sequence share more.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from capplan.physics import expert_entropy
from capplan.physics.surface import Array

QUANTILES = 400
"""Nodes of the quadrature: U is right within one part in 1e5 up to batch 128."""


@dataclass(frozen=True)
class Routing:
    """How the tokens of a step choose experts.

    An overlap is the expected share of one token's experts that another token chooses too. It lies
    between experts_per_token / experts (independent, all experts alike) and 1 (the same experts).
    """

    experts: int
    experts_per_token: int
    across: float
    """Overlap of tokens of different sequences."""
    within: float
    """Overlap of tokens of one sequence in one step."""
    popularity: tuple[float, ...] | None = None
    """Chance of each expert to be chosen by a token, where it is known; `across` follows from it.
    None for a beta distribution with the overlap `across`."""
    by_lag: tuple[float, ...] | None = None
    """Overlap of tokens of one sequence 1, 2, … apart, where it is known: then U rests on it, and
    steps of tokens farther apart are refused. `within` is its mean over pairs."""

    def __post_init__(self) -> None:
        """Refuses overlaps that no routing can have."""
        if not self.density <= self.across <= self.within < 1:
            raise ValueError(
                "overlaps must satisfy experts_per_token / experts <= across <= within < 1"
            )

    @property
    def density(self) -> float:
        """Share of the experts that one token chooses."""
        return self.experts_per_token / self.experts


def independent_routing(experts: int, experts_per_token: int) -> Routing:
    """Tokens choose independently and no expert is popular: the most experts a step can touch."""
    density = experts_per_token / experts
    return Routing(experts, experts_per_token, across=density, within=density)


def popular_routing(popularity: ArrayLike, within: float | None = None) -> Routing:
    """Routing whose experts are chosen as often as a count of them says.

    Args:
        popularity: How often each expert is chosen by a token, a share of tokens. [experts]
        within: Overlap of tokens of one sequence; None for tokens that choose independently.

    Raises:
        ValueError: A share is not one, or the overlap is smaller than popularity alone makes it.
    """
    chance = np.asarray(popularity, dtype=float)
    if np.any(chance < 0) or np.any(chance > 1):
        raise ValueError("the popularity of an expert must be a share of the tokens")
    chosen = round(float(chance.sum()))
    chance *= chosen / chance.sum()
    across = float(chance @ chance) / chosen
    inside = across if within is None else within
    return Routing(len(chance), chosen, across, inside, popularity=tuple(chance.tolist()))


def distinct_experts(
    routing: Routing, batch: ArrayLike, query_tokens: ArrayLike, prefill_tokens: ArrayLike = 0
) -> Array:
    """Distinct experts of a step with `batch` sequences of `query_tokens` tokens each.

    Two levels of beta mixing: an expert's popularity p is Beta distributed, with the overlap
    `across` sequences; inside a sequence, its chance is Beta distributed around p, with the overlap
    `within`. The chance that a sequence of q tokens misses the expert is
    Π_{i<q} (s(1 − p) + i) / (s + i), s = (1 − within) / (within − across), and
    U = E·(1 − E_p[miss_q(p)^B]). Overlap fades with the distance of two tokens, so the tokens of a
    prefill chunk count as sequences of their own.

    Where overlaps are known by lag, the second level is the distribution of maximum entropy that
    has them instead (`expert_entropy`).

    Args:
        routing: Expert counts and overlaps.
        batch: Decoding or verifying sequences; 0 in a step of prefill alone.
        query_tokens: Tokens of each of them. [tokens]
        prefill_tokens: Tokens of a prefill chunk in the same step. [tokens]

    Returns:
        Mean count of distinct experts, shape of the arguments broadcast.

    Raises:
        ValueError: A sequence has tokens farther apart than overlaps by lag are known.

    Source:
        The one-level form is the beta-binomial distribution with mean `density` and pairwise
        correlation (overlap − density) / (1 − density); its limit of no correlation is MoESD
        (arXiv 2505.19645), section 3.
    """
    _, weight, touched = touched_by_node(routing, batch, query_tokens, prefill_tokens)
    return np.asarray(routing.experts * (touched @ weight))


def touched_by_node(
    routing: Routing, batch: ArrayLike, query_tokens: ArrayLike, prefill_tokens: ArrayLike = 0
) -> tuple[Array, Array, Array]:
    """Chance that a step touches an expert, by the expert's popularity.

    Args:
        routing: As in `distinct_experts`.
        batch: The same.
        query_tokens: The same.
        prefill_tokens: The same.

    Returns:
        Popularities and the share of experts that has each [nodes], and the chances [..., nodes].
    """
    batch, query, prefill = np.broadcast_arrays(batch, query_tokens, prefill_tokens)
    chance, weight = popularity_nodes(routing)
    by_sequence = _missed_by_sequence if routing.by_lag is None else _missed_by_lag
    missed = (
        by_sequence(routing, chance, query) ** batch[..., None] * (1 - chance) ** prefill[..., None]
    )
    return chance, weight, 1 - missed


def _missed_by_sequence(routing: Routing, chance: Array, query: NDArray[np.int64]) -> Array:
    """Chance that no token of one sequence chooses the expert, shape query × nodes."""
    spread = (routing.within - routing.across) / (1 - routing.within)
    missed = np.ones((*query.shape, chance.size))
    for token in range(int(query.max(initial=0))):
        factor = (1 - chance + token * spread) / (1 + token * spread)
        missed *= np.where(query[..., None] > token, factor, 1.0)
    return missed


def _missed_by_lag(routing: Routing, chance: Array, query: NDArray[np.int64]) -> Array:
    """The same from overlaps by lag, shape query × nodes."""
    missed = np.ones((*query.shape, chance.size))
    for tokens in np.unique(query[query > 0]):
        missed[query == tokens] = _missed_of_width(routing, int(tokens))
    return missed


@lru_cache(maxsize=64)
def _missed_of_width(routing: Routing, tokens: int) -> Array:
    assert routing.by_lag is not None
    chance, _ = popularity_nodes(routing)
    correlation = (np.array(routing.by_lag) - routing.across) / (1 - routing.across)
    return expert_entropy.missed(chance, tuple(correlation.tolist()), tokens)


@lru_cache(maxsize=32)
def popularity_nodes(routing: Routing) -> tuple[Array, Array]:
    """Nodes and weights of a quadrature over the popularity of an expert.

    Gauss-Legendre over the quantiles; the nodes are scaled so that their mean is exact, which
    keeps U(1, 1) at experts_per_token.
    """
    if routing.popularity is not None:
        known = np.array(routing.popularity)
        return known, np.full(len(known), 1 / len(known))
    excess = routing.across - routing.density
    if excess < 1e-6 * routing.density:
        return np.array([routing.density]), np.array([1.0])
    size = (1 - routing.across) / excess
    node, weight = leggauss(QUANTILES)
    weight = weight / 2
    chance = betaincinv(size * routing.density, size * (1 - routing.density), (node + 1) / 2)
    return np.asarray(chance * routing.density / (weight @ chance)), weight
