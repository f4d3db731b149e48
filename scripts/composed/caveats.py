"""What the shipped profiles assume, with the range of each assumption."""

import numpy as np

from capplan.records.caveat import Caveat
from composed import acceptance, deployments

IDLE_REPORT = "https://github.com/vllm-project/vllm-ascend/issues/16638"
COHERE = "https://cohere.com/blog/mixture-of-experts-models-get-more-from-speculative-decoding"


def tail(factor: float, spread: str) -> str:
    """What a profile says of its tail factor."""
    return (
        f"99th percentile over mean of the time a token, {factor:g} ({spread}): assumed, not "
        "simulated. Next step: simulate the load."
    )


def common(factor: float, spread: str) -> tuple[Caveat, ...]:
    """Caveats of every composed profile."""
    return (
        Caveat(
            about="steps",
            text="Composed of kernel times that NVIDIA published; nobody ran this deployment for "
            "this profile. Measure with `capplan profile` before buying.",
        ),
        Caveat(about="fixed time", text=f"{deployments.FIXED.what}: {deployments.FIXED.where}."),
        Caveat(about="draft times", text=f"{deployments.ROUND.what}: {deployments.ROUND.where}."),
        Caveat(
            about="drafter's prefill",
            text="Not modelled: the drafter also runs over every prompt, which prefill and mixed "
            "steps leave out.",
        ),
        Caveat(
            about="power",
            text="Assumed: medians that ML.ENERGY saw on H100 (0.63 to 0.90 of TDP, range 0.3 to "
            "1.0), on the 700 W of H200, by tokens in the step; prefill 0.90 (0.75 to 1.0). No "
            "measurement of power under speculation went into it.",
        ),
        Caveat(
            about="acceptance",
            text="The spread between requests is assumed: standard deviation "
            f"{acceptance.PER_REQUEST_SD} (0.05 to 0.18).",
        ),
        Caveat(
            about="loaded_idle_overhead",
            text="Assumed 3 % (0 to 10 %). It can be far more: on one Ascend engine steps took 120 "
            f"to 150 ms with drafting on but no drafts, 48 to 59 ms with it off ({IDLE_REPORT}).",
        ),
        Caveat(about="tail", text=tail(factor, spread)),
        Caveat(
            about="memory",
            text="3.9 GiB a GPU for activations and communication is a planning figure of "
            "NVIDIA's, not read from this engine: compare the KV cache size it prints at start.",
        ),
    )


def kimi() -> tuple[Caveat, ...]:
    """Caveats of Kimi-K2.5 alone."""
    return (
        Caveat(
            about="distinct_experts",
            text="Overlap of routing is assumed: 0.33 of a token's experts recur in the next "
            "tokens of its sequence and 1.9 times chance across sequences, as Cohere saw at 8 of "
            f"128 experts (0.30 to 0.38; 0.118 where chance is 0.0625; {COHERE}). DeepSeek-V3.1, "
            "the nearest relative, is reported, at second hand, to touch 31.4 of 256 experts with "
            "4 verified tokens (https://arxiv.org/abs/2607.12696), where independent routing "
            "touches 30.5: no overlap. The upper ends of the intervals hold independent routing, "
            "which costs verification most at batch 4 to 32.",
        ),
        Caveat(
            about="acceptance",
            text="Coding was measured on NVFP4 weights and B300; chat and agent are assumed.",
        ),
        Caveat(
            about="kv_bytes_per_token",
            text="Each of the 8 GPUs keeps the whole latent cache, 8 x 70272 bytes a token.",
        ),
        Caveat(
            about="steps",
            text="The attention table ends at 1024 tokens; batch 128 with 9 tokens and batch 256 "
            "with 5 or more continue its last slope.",
        ),
        Caveat(about="sparse layers", text=_sparse_layers()),
    )


def _sparse_layers() -> str:
    off = deployments.kimi_misfit()
    even, skewed = (
        f"{100 * errors.min():+.0f} % (at {off.tokens[errors.argmin()]:g} tokens) to "
        f"{100 * errors.max():+.0f} % (at {off.tokens[errors.argmax()]:g})"
        for errors in (off.even, off.skewed)
    )
    full = off.tokens[np.argmax(off.tokens * deployments.KIMI_EXPERTS_PER_TOKEN >= 384)]
    return (
        f"The INT4 kernel's fit lies {even} off the published rows of even routing and, with the "
        f"overlap assumed here, {skewed} off those of skewed routing. Perfectly even routing, "
        f"which touches every expert from {full:g} tokens on, would take longer than the intervals "
        f"hold at {full:g} to 80 tokens."
    )


LLAMA = (
    Caveat(
        about="acceptance",
        text="All of it is assumed, from EAGLE-3 heads of Llama-3.3-70B.",
    ),
    Caveat(
        about="steps",
        text="The output head is by the roofline, gate and up lie between two published widths. "
        "The FP8 kernels jump past 128, 256 and 512 tokens and are a little slower at 17 to 32 "
        "tokens than at 64: so the table is not everywhere rising.",
    ),
)
