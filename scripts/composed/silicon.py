"""Terms of a composition out of NVIDIA's published kernel times (scripts/silicon_h200.yaml)."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.optimize import least_squares

from capplan.physics.composition import SparseKernel
from capplan.physics.experts import Routing
from capplan.physics.load import decode_load
from capplan.physics.roofline import Curve, Roofline
from capplan.physics.surface import Array
from capplan.records.caveat import Source

TABLES = Path(__file__).parents[1] / "silicon_h200.yaml"
PACKAGE = "NVIDIA aiconfigurator-core 0.12.0, systems"
LICENCE = "Apache-2.0"

CONTINUED = "continued with the last slope to"

BANDWIDTH_BYTES_PER_S = 0.9 * 4.8e12
BF16_FLOP_PER_S = 0.8 * 989e12
LAUNCH_S = 5e-6
"""Of a matrix product. This and the two rates above are assumed; how far the roofline then lies off
published products (left-out in the tables) is in tests/oracle/test_composed_profiles.py."""
SMALL_LAUNCH_S = 3e-6
SMALL_BANDWIDTH_BYTES_PER_S = 0.8 * 4.8e12
"""Of a small kernel: both as in the package's systems/h200_sxm.yaml."""

H200 = Source(
    what="bandwidth 4.8 TB/s, 989 TFLOP/s dense bf16, 3 us and 80 % of bandwidth a small kernel",
    where=f"{PACKAGE}/h200_sxm.yaml",
    licence=LICENCE,
)
SILICON = Source(
    what="kernel times of H200-SXM under vLLM 0.24.0",
    where="PyPI aiconfigurator-core 0.12.0, https://github.com/ai-dynamo/aiconfigurator; the rows "
    "used stand in scripts/silicon_h200.yaml. Copyright NVIDIA Corporation & Affiliates",
    licence=LICENCE,
)


@cache
def _pieces() -> dict[str, Any]:
    return dict(yaml.safe_load(TABLES.read_text()))


def source(name: str, what: str, fitted: str = "") -> Source:
    """Where one piece of the tables stands."""
    piece = _pieces()[name]
    where = f"{PACKAGE}/data/h200_sxm/{piece['file']}: {piece['rows']}"
    return Source(what=what, where=where + (f"; {fitted}" if fitted else ""), licence=LICENCE)


def curve(name: str, what: str, by: str = "tokens") -> Curve:
    """One piece as it stands."""
    piece = _pieces()[name]
    return Curve(tuple(piece[by]), tuple(1e-6 * time for time in piece["us"]), source(name, what))


def edges(name: str) -> tuple[int, ...]:
    """Tokens that fill a piece's tiles: those published together with one token more."""
    published = _pieces()[name]["tokens"]
    return tuple(tokens for tokens in published[1:] if tokens + 1 in published)


def continued(short: Curve, size: float) -> Curve:
    """A curve with its last slope drawn out to a size, which its source then says."""
    slope = (short.times_s[-1] - short.times_s[-2]) / (short.sizes[-1] - short.sizes[-2])
    time = short.times_s[-1] + slope * (size - short.sizes[-1])
    where = f"{short.source.where}; beyond {short.sizes[-1]:g} {CONTINUED} {size:g}"
    named = short.source.model_copy(update={"where": where})
    return Curve((*short.sizes, size), (*short.times_s, time), named)


def between(names: tuple[str, str], weight: float, what: str) -> Curve:
    """Two pieces mixed: a matrix whose width lies between two published widths."""
    first, second = (curve(name, what) for name in names)
    times = zip(first.times_s, second.times_s, strict=True)
    mixed = tuple((1 - weight) * low + weight * high for low, high in times)
    where = f"{first.source.where} and {_pieces()[names[1]]['rows']}, interpolated in n"
    return Curve(first.sizes, mixed, Source(what=what, where=where, licence=LICENCE))


def matrices(what: str, weights: float, launches: int, bytes_per_weight: float = 2) -> Roofline:
    """bf16 matrix products of one GPU by the roofline; `weights` counts parameters."""
    estimated = f"{H200.where}: {LAUNCH_S * 1e6:g} us a launch, 90 % of bandwidth, 80 % of flop"
    return Roofline(
        launch_s=launches * LAUNCH_S,
        bandwidth_bytes_per_s=BANDWIDTH_BYTES_PER_S,
        flop_per_s=BF16_FLOP_PER_S,
        weights_bytes=weights * bytes_per_weight,
        flop_per_row=2 * weights,
        source=Source(
            what=what, where=f"estimated by the roofline of {estimated}", licence=LICENCE
        ),
    )


def small_kernels(what: str, kernels: int, bytes_per_row: float) -> Roofline:
    """Norms, activations and the like: a launch each, then memory traffic."""
    where = f"{H200.where}; how many kernels and bytes is counted by hand, hence assumed"
    return Roofline(
        launch_s=kernels * SMALL_LAUNCH_S,
        bandwidth_bytes_per_s=SMALL_BANDWIDTH_BYTES_PER_S,
        flop_per_s=BF16_FLOP_PER_S,
        weights_bytes=0,
        flop_per_row=0,
        bytes_per_row=bytes_per_row,
        source=Source(what=what, where=where, licence=LICENCE),
    )


def sparse_kernel(name: str, routing: Routing) -> SparseKernel:
    """Fits a + b·U + e·max(0, tokens − tile) by least squares on relative errors.

    a and b on the balanced rows up to 64 tokens, whose U is known exactly; e and tile on the mean
    of balanced and power-law rows from 128 tokens, where all experts are touched.
    """
    piece = _pieces()[name]
    tokens = np.array(piece["tokens"], dtype=float)
    balanced = 1e-6 * np.array(piece["balanced_us"])
    skewed = 1e-6 * np.array(piece["power_law_us"])
    few, many = tokens <= 64, tokens >= 128
    touched = np.minimum(routing.experts_per_token * tokens, routing.experts)[few]
    constant_s, expert_s = relative_fit(np.c_[np.ones_like(touched), touched], balanced[few])
    full_s = constant_s + expert_s * routing.experts
    target_s = (balanced + skewed)[many] / 2

    def error(terms: Array) -> Array:
        beyond = np.maximum(0, tokens[many] - terms[1])
        return np.asarray((full_s + 1e-6 * terms[0] * beyond) / target_s - 1)

    token_us, tile = least_squares(error, [0.5, 150.0]).x
    fitted = "fitted a + b U + e max(0, tokens - tile)"
    return SparseKernel(
        routing=routing,
        constant_s=constant_s,
        expert_s=expert_s,
        token_s=1e-6 * token_us,
        tile_tokens=tile,
        source=source(name, "routed experts of a layer", fitted),
    )


@dataclass(frozen=True)
class Misfit:
    """A fitted sparse kernel over the rows it was fitted to, less one."""

    tokens: Array
    even: Array
    """On balanced rows, whose U is known."""
    skewed: Array
    """On power-law rows, with U of the kernel's own routing."""

    def span(self, beyond_tokens: float) -> float:
        """How far a row lies off the fit at most, as part of the fit."""
        errors = np.r_[self.even, self.skewed][np.tile(self.tokens > beyond_tokens, 2)]
        return float(np.abs(1 / (1 + errors) - 1).max())


def misfit(name: str, kernel: SparseKernel) -> Misfit:
    """How far a sparse kernel lies off its piece."""
    piece = _pieces()[name]
    tokens = np.array(piece["tokens"], dtype=float)
    fitted_s = kernel.at(decode_load(tokens, 0, 1))
    own = kernel.distinct(decode_load(tokens, 0, 1))
    routing = kernel.routing
    even = np.minimum(routing.experts_per_token * tokens, routing.experts)
    even_s = fitted_s + kernel.expert_s * (even - own)
    return Misfit(
        tokens=tokens,
        even=np.asarray(1e6 * even_s / piece["balanced_us"] - 1),
        skewed=np.asarray(1e6 * fitted_s / piece["power_law_us"] - 1),
    )


def cached_token_s(name: str, what: str) -> tuple[float, Source]:
    """Seconds a cached token of one sequence: rise from short to long context, mean over rows."""
    piece = {key: np.array(value) for key, value in _pieces()[name].items()}
    tokens = piece["sequences"] * (piece["long_contexts"] - piece["short_contexts"])
    slopes = 1e-6 * (piece["long_us"] - piece["short_us"]) / tokens
    return float(np.mean(slopes)), source(name, what, "mean slope")


def prefill_fit(name: str, base_s: float) -> tuple[float, float]:
    """Seconds a prefill token and a pair of tokens, beside a known base, from a batch-1 piece."""
    piece = _pieces()[name]
    tokens = np.array(piece["tokens"], dtype=float)
    times = 1e-6 * np.array(piece["us"])
    rest = np.c_[tokens, tokens**2 / 2] / times[:, None]
    token_s, pair_s = np.linalg.lstsq(rest, 1 - base_s / times, rcond=None)[0]
    return float(token_s), float(pair_s)


def relative_fit(terms: Array, times_s: Array) -> tuple[float, ...]:
    """Linear least squares on relative errors."""
    scaled = terms / times_s[:, None]
    solution = np.linalg.lstsq(scaled, np.ones_like(times_s), rcond=None)[0]
    return tuple(float(value) for value in solution)
