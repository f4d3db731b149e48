"""How often a drafter is right: published curves turned into shares by position, or an assumption.

A chain drafter's i-th proposal does not depend on how many are drafted, so mean tokens a round at
1, 2, … drafts give the share of rounds whose i-th draft is kept: c_i = A(i) − A(i − 1). No chance
of one position is carried on to the next: published curves do not keep to one.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from capplan.physics.surface import Array
from capplan.records.acceptance import Acceptance
from capplan.records.caveat import Origin, OriginKind, Source
from capplan.records.known_drafter import AcceptanceCurve

PER_REQUEST_SD: Final = 0.10
SPREAD: Final = "standard deviation between requests 0.10 (0.05 to 0.18)"
MARGIN: Final = 0.05
"""Part taken off for what other weights or another engine may change."""
CHAT_OVER_CODING: Final = 0.71
HEADS: Final = Source(
    what="accepted drafts on MT-bench over HumanEval at 7 drafts: 0.71, 0.72 and 0.71 for three "
    "EAGLE-3 heads",
    where="https://huggingface.co/nebius/EAGLE3-Llama-3.3-70B-Instruct, model card",
    licence="CC-BY-4.0",
)
PROSE_CHANCE: Final = 0.49
PROSE: Final = Source(
    what="acceptance a drafted token: 0.91 code, 0.61 factual, 0.49 prose",
    where="https://github.com/tenstorrent/vllm/issues/442",
)


def acceptance(
    own: Sequence[AcceptanceCurve], others: Sequence[AcceptanceCurve]
) -> dict[str, Acceptance]:
    """Acceptance by workload: coding, chat and agent.

    Args:
        own: Curves published for the drafter, of coding, with thinking first.
        others: Curves published for other drafters, which an assumption is taken from where there
            is none of its own.

    Returns:
        Shares by position with a range, each with its origin.
    """
    low, coding, high, note = _published(own) if own else _assumed(others)
    sources = tuple(dict.fromkeys(curve.source for curve in own or others))
    kind: OriginKind = "imported" if own else "assumed"
    chat = fading(coding, CHAT_OVER_CODING)
    agent = (coding + chat) / 2
    prose = PROSE_CHANCE ** np.arange(1, coding.size + 1)
    least = np.minimum(prose, chat)
    other = (*sources, HEADS, PROSE)
    fades = (
        f"Assumed of {'' if own else 'the assumed '}coding: fading by one factor a position until "
        "7 drafts win 0.71 of what they win on code. Low is 0.49 a token, as for prose"
    )
    return {
        "coding": _record(low, coding, high, Origin(kind=kind, sources=sources, note=note)),
        "chat": _record(
            least, chat, coding,
            Origin(kind="assumed", sources=other, note=f"{fades}; high is coding."),
        ),
        "agent": _record(
            least, agent, high,
            Origin(
                kind="assumed",
                sources=other,
                note="Assumed midway between coding and chat; low as chat, high as coding.",
            ),
        ),
    }  # fmt: skip


def shares(tokens_per_round: Sequence[float]) -> Array:
    """Shares of rounds that keep the draft at position 1, 2, …; rises by rounding are cut."""
    steps = np.diff(np.array([1.0, *tokens_per_round]))
    return np.asarray(np.clip(np.minimum.accumulate(steps), 0.0, 1.0))


def fading(coding: Array, won: float) -> Array:
    """Shares times a factor a position, such that 7 drafts win the part `won` of before."""
    position = np.arange(1, coding.size + 1)
    below, above = 0.0, 1.0
    for _ in range(50):
        factor = (below + above) / 2
        faded = np.sum((coding * factor**position)[:7])
        below, above = (factor, above) if faded < won * np.sum(coding[:7]) else (below, factor)
    return np.asarray(coding * factor**position)


def _published(own: Sequence[AcceptanceCurve]) -> tuple[Array, Array, Array, str]:
    curves = np.array([shares(curve.tokens_per_round) for curve in own])
    thought = {True: "with thinking", False: "without thinking", None: "as published"}
    note = (
        f"Coding, {thought[own[0].thinking]}, seen on {own[0].conditions}. Low is the lowest "
        f"published curve of this drafter less {MARGIN:.0%}, high the highest."
    )
    return curves.min(axis=0) * (1 - MARGIN), curves[0], curves.max(axis=0), note


def _assumed(others: Sequence[AcceptanceCurve]) -> tuple[Array, Array, Array, str]:
    curves = np.array([shares(curve.tokens_per_round) for curve in others])
    note = (
        "Nobody published this drafter's acceptance under a licence to ship it. Assumed from "
        f"{len(others)} published curves of other models' drafters on coding: position by position "
        f"their median, the lowest less {MARGIN:.0%} and the highest."
    )
    return curves.min(axis=0) * (1 - MARGIN), np.median(curves, axis=0), curves.max(axis=0), note


def _record(low: Array, middle: Array, high: Array, origin: Origin) -> Acceptance:
    """Shares to three digits, ends never inside the middle."""
    least, centre, most = (
        np.minimum.accumulate(np.round(one, 3))
        for one in (np.minimum(low, middle), middle, np.maximum(high, middle))
    )
    return Acceptance(
        accepted_share=tuple(centre.tolist()),
        low_share=tuple(least.tolist()),
        high_share=tuple(most.tolist()),
        per_request_sd=PER_REQUEST_SD,
        origin=origin,
    )
