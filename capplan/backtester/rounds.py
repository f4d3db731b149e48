"""Rounds of speculation that were published, predicted from the facts published with them.

A round drafts, verifies and rejects: its time over that of a plain step at the same batch is the
cycle ratio, and the speed-up is tokens per round over it. Nothing here looks at the measured value
but to compare.
"""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np

from capplan.physics.load import Load, decode_load
from capplan.physics.surface import Array
from capplan.records.published import PublishedRound

Overlap = Literal["assumed", "independent", "alike"]
CONTEXT_TOKENS: Final = 1024
"""Where the source says none: answers to short questions."""
HOST_S: Final = {"sglang": (1.0e-3, 3.0e-3, 6.0e-3)}
"""What a round costs beside its kernels, least, middle and most. [s]

SGLang's workers for speculation ran without overlapped scheduling until late in 2025: for want of
it LMSYS saw 51.0 rather than 60.4 tokens/s of 2 requests, 6 ms a step
(https://lmsys.org/blog/2025-07-17-mtp/).
"""
OTHER_HOST_S: Final = (0.3e-3, 1.0e-3, 2.4e-3)
"""As composed profiles assume."""
HEAD_PASS_S: Final = (0.0, 0.3e-3, 0.9e-3)
"""What each pass of a head waits for its host. EAGLE on gpt-oss-120b took 0.24 ms a pass in all
(https://github.com/vllm-project/vllm/issues/32628), on Llama-3.1-8B 0.97 ms, of which kernels are
about half (https://github.com/vllm-project/vllm/pull/24343). [s]"""
MODEL_PASS_S: Final = (0.5e-3, 2.5e-3, 4.5e-3)
"""The same of a model of its own. vLLM logged 4.96 ms a drafted token of Qwen2-7B in 4 bits on four
GPUs, whose kernels take about half of it (https://github.com/vllm-project/vllm/issues/8370). [s]"""
HEADS: Final = ("eagle", "eagle3", "mtp")
STEP_ERROR: Final = {"composed": (0.10, 0.15), "estimated": (0.15, 0.35)}
"""Of a verification step over a decode step, below and above. Errors of both mostly cancel; what
rooflines leave out makes rounds longer rather than shorter: on the development half they came out a
sixth too short."""
DRAFT_ERROR: Final = {"composed": 0.30, "estimated": 0.50}
"""Of the drafter's kernels."""
ACCEPTANCE_ERROR: Final = 0.03
"""Of published tokens per round, which are rounded, and measured at another batch or on a mean."""


class Steps(Protocol):
    """Step and drafting times of one deployment."""

    @property
    def origin(self) -> Literal["composed", "estimated"]:
        """Of operators timed, or of rooflines."""

    @property
    def sparse(self) -> bool:
        """Whether the model has routed experts."""

    def step_s(self, load: Load, overlap: Overlap) -> Array:
        """Time of a step [s]; NaN outside the tables."""

    def draft_s(self, load: Load, passes: int, beams: int) -> Array:
        """Kernel time of one round's drafting [s]; the load is that of the verification."""


@dataclass(frozen=True)
class Ranged:
    """One ratio with its range."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RoundResult:
    """A published round and what is predicted of it."""

    published: PublishedRound
    origin: Literal["composed", "estimated"]
    cycle: Ranged
    verify: Ranged
    speed_up: Ranged | None
    """None where tokens per round were not published."""


def missing(published: PublishedRound) -> str | None:
    """The fact that a prediction lacks; None where all are there."""
    facts = {
        "model": published.model,
        "GPU": published.gpu,
        "engine": published.engine,
        "batch": published.batches,
        "draft length": published.passes and published.query_tokens,
        "drafter": published.drafter,
        "tokens per round": published.tokens_per_round or published.cycle_ratio,
    }
    lacking = next((f"{fact} not said" for fact, value in facts.items() if not value), None)
    if lacking is None and (published.tokens_per_round or 0) > (published.query_tokens or 0):
        return "more tokens per round than were verified"
    return lacking


def predict(published: PublishedRound, steps: Steps) -> RoundResult | None:
    """The ratios of one round, at the best of its batches; None where all leave the tables.

    Args:
        published: With nothing missing.
        steps: Of its deployment.
    """
    assert published.passes is not None
    assert published.query_tokens is not None
    batches = np.array(published.batches, dtype=float)
    context = published.context_tokens or CONTEXT_TOKENS
    decode = decode_load(batches, context, 1)
    verify = decode_load(batches, context, published.query_tokens)
    drafted = steps.draft_s(verify, published.passes, published.beams)
    plain, middle = _against_plain(published, steps, decode, verify, "assumed")
    others = [_against_plain(published, steps, decode, verify, one)[1] for one in _ENDS]
    host = host_s(published)
    cycle = middle + (drafted + host[1]) / plain
    if not np.isfinite(cycle).any():
        return None
    best = int(np.nanargmin(cycle))
    ends = [float(one[best]) for one in others]
    verified = _ranged(float(middle[best]), ends, STEP_ERROR[steps.origin])
    error = DRAFT_ERROR[steps.origin] * drafted[best] / plain[best]
    ranged = _joined(float(cycle[best]), verified, float(error), host / plain[best])
    tokens = published.tokens_per_round
    return RoundResult(
        published, steps.origin, ranged, verified, None if tokens is None else _won(tokens, ranged)
    )


def _against_plain(
    published: PublishedRound, steps: Steps, decode: Load, verify: Load, overlap: Overlap
) -> tuple[Array, Array]:
    """Plain step [s], and the verification step over it.

    A plain step that was published is taken as it is. Where it lasted longer than its kernels, the
    rest is gaps and host time, which verification has too: it does not grow with the tokens.
    """
    predicted = steps.step_s(decode, overlap)
    longer = steps.step_s(verify, overlap)
    if published.plain_s is None:
        return predicted, longer / predicted
    plain = np.full(predicted.shape, published.plain_s)
    gaps = np.maximum(0.0, plain - predicted)
    return plain, (longer + gaps) / (predicted + gaps)


def _joined(value: float, verified: Ranged, error: float, host: Array) -> Ranged:
    """A cycle ratio with the parts of its range joined in quadrature; never below 1."""
    below = np.linalg.norm([verified.value - verified.low, error, host[1] - host[0]])
    above = np.linalg.norm([verified.high - verified.value, error, host[2] - host[1]])
    return Ranged(value, max(1.0, value - float(below)), value + float(above))


def host_s(published: PublishedRound) -> Array:
    """What a round waits for its host: least, middle and most [s]."""
    once = np.array(HOST_S.get(published.engine or "", OTHER_HOST_S))
    if published.drafter == "ngram":
        return once
    each = HEAD_PASS_S if published.drafter in HEADS else MODEL_PASS_S
    return np.asarray(once + (published.passes or 0) * np.array(each))


_ENDS: Final[tuple[Overlap, ...]] = ("independent", "alike")


def _ranged(middle: float, ends: list[float], error: tuple[float, float]) -> Ranged:
    """The middle, with what other routing and a step's error may change joined in quadrature."""
    below = np.hypot(middle - min(middle, *ends), error[0] * middle)
    above = np.hypot(max(middle, *ends) - middle, error[1] * middle)
    # Verifying more tokens is never faster than decoding one.
    return Ranged(float(middle), float(max(1.0, middle - below)), float(middle + above))


def _won(tokens: float, cycle: Ranged) -> Ranged:
    """Speed-up, the part of its range by the cycle and by acceptance joined in quadrature."""
    value = tokens / cycle.value
    below = np.hypot(1 - cycle.value / cycle.high, ACCEPTANCE_ERROR)
    above = np.hypot(cycle.value / cycle.low - 1, ACCEPTANCE_ERROR)
    return Ranged(value, value * float(1 - below), value * float(1 + above))
