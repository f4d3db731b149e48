"""Linear attention with a gated delta rule: a state of fixed size instead of a cache.

Decode reads and writes the state once. Verification must be able to go back to the state after any
of its tokens, so it reads once and writes after each: (1 + q) / 2 times the traffic of decode.
NVIDIA timed both on a Kimi-K3 layer, and at 64 and more sequences the ratio holds within a tenth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from capplan.composer.asked import Asked
from capplan.composer.cached import chunk_s
from capplan.composer.kept import kept, kept_caveats
from capplan.composer.matrices import matrix
from capplan.composer.refusals import Refused
from capplan.composer.small import small
from capplan.composer.term import Term
from capplan.physics.load import Load
from capplan.physics.operators import Silicon, Table
from capplan.physics.roofline import Curve
from capplan.physics.surface import Array
from capplan.records.architecture import DeltaNet
from capplan.records.caveat import Caveat

VERIFIED: Final = Caveat(
    about="linear attention",
    text=(
        "Verification is taken to write the state after each of its tokens, (1 + q) / 2 times the "
        "traffic of decode; fused kernels of some engines differ."
    ),
)
CONVOLUTION: Final = "causal_conv1d"
"""How the names of the convolution's kernels begin; all others work on the state."""


@dataclass(frozen=True)
class StateKernel:
    """One kernel of one layer on one GPU, while decoding and in prefill."""

    decode: Curve
    """By sequences."""
    prefill: Curve
    """By tokens of a chunk of one prompt."""

    def at(self, load: Load) -> Array:
        """Time of one layer [s]; what one sequence costs does not grow with its tokens."""
        sequences = np.clip(load.batch, self.decode.sizes[0], self.decode.sizes[-1])
        start = self.decode.times_s[0]
        moved = (self.decode.at(sequences) - start) * (1 + load.query_tokens) / 2
        decode_s = np.where(load.batch > self.decode.sizes[-1], np.nan, start + moved)
        # Time is straight in tokens long before the longest chunk: nothing in it is pairwise.
        return np.where(load.batch > 0, decode_s, 0.0) + chunk_s(
            self.prefill, load.prefill_tokens, np.zeros(()), 0.0
        )


def recurrent_terms(asked: Asked, tables: Silicon, shape: DeltaNet, count: int) -> Iterator[Term]:
    """All of a layer: the state's kernels and projections.

    Raises:
        Refused: No table has such heads.
    """
    hidden = asked.model.hidden_size
    key = shape.key_heads * shape.key_head_size
    value = shape.value_heads * shape.value_head_size

    def product(what: str, precision: str, n: int, k: int) -> Term:
        return matrix(tables, "attention", what, precision, (n, k), count)

    wide = kept(asked.weights)
    yield product("projections into the layer", wide, 2 * key + 2 * value, hidden)
    # Decay and strength have too few outputs to quantise.
    yield product("decay and strength", "bf16", 2 * shape.value_heads, hidden)
    caveats = (VERIFIED, *kept_caveats(asked.weights))
    for what, kernel in _kernels(tables, shape):
        sources = (kernel.decode.source, kernel.prefill.source)
        yield Term("attention", what, count, kernel.at, sources, caveats=caveats)
    yield small(tables, "parting of the projections", 2 * key + 2 * value, count)
    yield small(tables, "gated norm", value, count)
    yield product("output projection", wide, hidden, value)


@lru_cache(maxsize=32)
def _kernels(tables: Silicon, shape: DeltaNet) -> tuple[tuple[str, StateKernel], ...]:
    wanted: dict[str, Any] = {
        "num_k_heads": shape.key_heads,
        "num_v_heads": shape.value_heads,
        "head_k_dim": shape.key_head_size,
        "head_v_dim": shape.value_head_size,
        "d_conv": shape.kernel,
    }
    rows = ", ".join(f"{name}={value}" for name, value in wanted.items())
    found = tables.find("gdn", **wanted)
    if found is None:
        raise Refused("model", "linear attention has no table of these heads", rows)
    decode, prefill = found.where(phase="generation"), found.where(phase="context", batch_size=1)
    return tuple(
        (
            what,
            StateKernel(
                _of(decode, convolution).curve("batch_size", what, rows),
                _of(prefill, convolution).curve("seq_len", what, rows),
            ),
        )
        for what, convolution in (("short convolution", True), ("state", False))
    )


def _of(table: Table, convolution: bool) -> Table:
    named = [str(name).startswith(CONVOLUTION) for name in table["kernel_source"]]
    return table.rows(np.array(named) == convolution)
