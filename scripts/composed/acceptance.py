"""Published and assumed acceptance of the two EAGLE-3 heads."""

import numpy as np
from scipy.optimize import brentq

from capplan.records.acceptance import Acceptance
from capplan.records.caveat import Origin, OriginKind, Source

POSITIONS = 8
PER_REQUEST_SD = 0.10

GOLDEN = Source(
    what="mean tokens a round of Kimi-K2.5 (NVFP4, EAGLE-3, vLLM, B300) on SPEED-Bench coding",
    where="https://github.com/SemiAnalysisAI/InferenceX/tree/843c625/golden_al_distribution",
    licence="Apache-2.0",
)
THINKING_ON = (1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77)
THINKING_OFF = (1.80, 2.33, 2.75, 3.06, 3.25, 3.43, 3.46, 3.51)
MARGIN = 0.05
"""Share taken off for what INT4 weights and another GPU may change."""

HEADS = Source(
    what="tokens a round of EAGLE-3 heads of Llama-3.1-8B and Llama-3.3-70B at 7 drafts, "
    "temperature 1: MT-bench 2.77, 2.88, 3.89; HumanEval 3.49, 3.62, 5.08",
    where="https://huggingface.co/nebius/EAGLE3-Llama-3.3-70B-Instruct, model card",
    licence="CC-BY-4.0",
)
CHAT_OVER_CODING = 0.71
"""Accepted drafts on MT-bench over HumanEval: 0.71, 0.72 and 0.71 for the three heads."""
PROSE = Source(
    what="acceptance a drafted token: 0.91 code, 0.61 factual, 0.49 prose",
    where="https://github.com/tenstorrent/vllm/issues/442",
)

Shares = tuple[float, ...]


def kimi() -> dict[str, Acceptance]:
    """Acceptance of Kimi-K2.5's drafter by workload."""
    coding = shares_of(THINKING_ON)
    without = shares_of(THINKING_OFF)
    cautious = tuple(share * (1 - MARGIN) for share in without)
    chat = fading(coding, CHAT_OVER_CODING)
    agent = tuple((one + other) / 2 for one, other in zip(coding, chat, strict=True))
    return {
        "coding": _acceptance(
            (cautious, coding, coding),
            "imported",
            "With thinking. Measured on NVFP4 weights and B300, used for INT4 on H200: low is the "
            "curve without thinking less 5 %.",
            GOLDEN,
        ),
        "chat": _acceptance(
            (chain(0.49), chat, without),
            "assumed",
            "The coding curve, fading by one factor a position until 7 drafts win 0.71 of what "
            "they win on code, as on MT-bench over HumanEval for three other EAGLE-3 heads. Low "
            "is 0.49 a token, as for prose; high is coding without thinking.",
            GOLDEN, HEADS, PROSE,
        ),
        "agent": _acceptance(
            (chain(0.49), agent, coding),
            "assumed",
            "Midway between coding and chat; low as chat, high as coding with thinking.",
            GOLDEN, HEADS, PROSE,
        ),
    }  # fmt: skip


def llama() -> dict[str, Acceptance]:
    """Acceptance of Llama-3.1-70B's drafter by workload, at 7 drafts as on the model card."""
    ranges = {"chat": (2.2, 2.88, 3.89), "coding": (2.8, 3.62, 5.08), "agent": (2.2, 3.25, 5.08)}
    note = (
        "A chain of equal chances that gives {1} tokens a round at 7 drafts ({0} to {2}). Centre "
        "and high are two heads of Llama-3.3-70B on MT-bench (chat) and HumanEval (coding); agent "
        "is midway; low is assumed."
    )
    return {
        workload: _acceptance(
            tuple(chain(chance_of(tokens, drafts=7)) for tokens in tokens_per_round),
            "assumed",
            note.format(*tokens_per_round),
            HEADS,
        )
        for workload, tokens_per_round in ranges.items()
    }


def shares_of(tokens_per_round: Shares) -> Shares:
    """Shares by position out of mean tokens a round by draft length: c_i = A(i) − A(i − 1)."""
    return tuple(float(step) for step in np.diff((1.0, *tokens_per_round)))


def chain(chance: float) -> Shares:
    """Shares by position when each draft has the same chance."""
    return tuple(chance**position for position in range(1, POSITIONS + 1))


def chance_of(tokens_per_round: float, drafts: int) -> float:
    """The equal chance that gives these tokens a round."""
    powers = np.arange(drafts + 1)
    return float(brentq(lambda chance: np.sum(chance**powers) - tokens_per_round, 0.01, 0.99))


def fading(shares: Shares, won: float) -> Shares:
    """Shares times a factor a position, such that 7 drafts win the part `won` of before."""
    position = np.arange(1, len(shares) + 1)
    before = np.array(shares)

    def excess(factor: float) -> float:
        return float(np.sum((before * factor**position)[:7]) - won * np.sum(before[:7]))

    return tuple(float(share) for share in before * brentq(excess, 0.1, 1.0) ** position)


def _acceptance(
    low_mid_high: tuple[Shares, ...], kind: OriginKind, note: str, *sources: Source
) -> Acceptance:
    low, middle, high = (np.array(_falling(shares)) for shares in low_mid_high)
    return Acceptance(
        accepted_share=tuple(middle.tolist()),
        low_share=tuple(np.minimum(low, middle).tolist()),
        high_share=tuple(np.maximum(high, middle).tolist()),
        per_request_sd=PER_REQUEST_SD,
        origin=Origin(kind=kind, sources=sources, note=note),
    )


def _falling(shares: Shares) -> Shares:
    """In three digits; a curve read to two digits may rise by its rounding, which is cut."""
    return tuple(float(share) for share in np.minimum.accumulate(np.round(shares, 3)))
