"""Routed experts: the fitted layer at the distinct experts and the tokens of a step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from capplan.composer.asked import Asked
from capplan.composer.expert_rows import Wanted, fitted
from capplan.composer.term import Term
from capplan.physics.expert_ranks import busiest_rank
from capplan.physics.experts import Routing
from capplan.physics.load import Load
from capplan.physics.moe_layer import MoeLayer
from capplan.physics.operators import Silicon
from capplan.physics.surface import Array
from capplan.records.architecture import Moe
from capplan.records.caveat import Caveat

WITHIN: Final = 0.33
"""Overlap of tokens of one sequence (Cohere's mean over three lags, 128 experts)."""
ACROSS_OVER_CHANCE: Final = 1.9
"""Overlap of tokens of different sequences over that of independent ones (Cohere: 0.118 at 8 of 128
experts, where chance is 0.0625)."""
OPERATORS: Final = 8
"""Operators that the host launches for a layer's routed experts: choice, sorting, quantising and
two products with what lies between and after them."""
ASSUMED: Final = Caveat(
    about="routing",
    text=(
        "How alike tokens choose experts was assumed: those of one sequence share 33 % of their "
        "experts, those of different sequences 1.9 times what chance gives (Cohere, 8 of 128 "
        "experts). Real overlap differs from model to model; give it where it was measured "
        "(compose --routing)."
    ),
)


@dataclass(frozen=True)
class RoutedExperts:
    """One layer's routed experts on the GPU with most of them to read."""

    layer: MoeLayer
    routing: Routing

    def at(self, load: Load) -> Array:
        """Time of one layer [s], shape of the load; NaN beyond the table."""
        busiest = busiest_rank(self.routing, load, self.layer.ranks)
        tokens, last = np.maximum(load.tokens, 1), self.layer.sizes[-1]
        time_s = self.layer.at(np.minimum(tokens, last), busiest.distinct, busiest.rows)
        return np.where(tokens > last, np.nan, time_s)


def routed_experts(asked: Asked, tables: Silicon, shape: Moe, count: int) -> Term:
    """The routed experts of a layer.

    Args:
        asked: The deployment.
        tables: Of its GPU and engine.
        shape: Of the whole model, not of one GPU's share.
        count: Layers.

    Raises:
        Refused: No table has experts of such matrices, so split, at this precision.
    """
    wanted = Wanted(
        hidden_size=shape.latent_size or asked.model.hidden_size,
        expert_width=shape.expert_width,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        slices=asked.split.slices,
        groups=asked.split.expert,
        precision=asked.experts or asked.weights,
    )
    found = fitted(tables, wanted)
    routed = RoutedExperts(found.layer, asked.routing or assumed_routing(shape))
    return Term(
        "sparse",
        "routed experts",
        count,
        routed.at,
        (found.source,),
        found.error,
        caveats=tuple(_caveats(asked, found.layer, shape)),
        operators=OPERATORS,
    )


def _caveats(asked: Asked, found: MoeLayer, shape: Moe) -> Iterator[Caveat]:
    if asked.routing is None:
        yield ASSUMED
    timed = found.experts, found.experts_per_token
    if timed != (shape.experts, shape.experts_per_token):
        text = (
            f"Layers of {shape.experts} experts with {shape.experts_per_token} a token were not "
            f"timed: they are read off a layer of {timed[0]} with {timed[1]} of the same matrices, "
            "by distinct experts and by products."
        )
        yield Caveat(about="experts", text=text)


def assumed_routing(shape: Moe) -> Routing:
    """The default: what was seen of one model, no more than halfway to all tokens alike.

    Source:
        https://cohere.com/blog/mixture-of-experts-models-get-more-from-speculative-decoding
    """
    density = shape.experts_per_token / shape.experts
    across = min(ACROSS_OVER_CHANCE * density, (1 + density) / 2)
    return Routing(shape.experts, shape.experts_per_token, across, max(WITHIN, across))
