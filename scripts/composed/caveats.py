"""What the shipped profiles assume, with the range of each assumption."""

from capplan.records.caveat import Caveat
from composed import acceptance, deployments

COMMON = (
    Caveat(
        about="steps",
        text="Composed of kernel times that NVIDIA published; nobody ran this deployment for this "
        "profile. Measure with `capplan profile` before buying.",
    ),
    Caveat(about="fixed time", text=f"{deployments.FIXED.what}: {deployments.FIXED.where}."),
    Caveat(about="draft times", text=f"{deployments.ROUND.what}: {deployments.ROUND.where}."),
    Caveat(
        about="power",
        text="Assumed: medians that ML.ENERGY saw on H100 (0.63 to 0.90 of TDP, range 0.3 to 1.0), "
        "on the 700 W of H200, by tokens in the step; prefill 0.90 (0.75 to 1.0). Nobody published "
        "the power of speculation on such GPUs.",
    ),
    Caveat(
        about="acceptance",
        text="The spread between requests is assumed: standard deviation "
        f"{acceptance.PER_REQUEST_SD} (0.05 to 0.18).",
    ),
    Caveat(
        about="loaded_idle_overhead",
        text="Assumed 3 %; 2 to 7 % has been seen, more in older engines.",
    ),
    Caveat(
        about="tail",
        text="99th percentile over mean of the time a token is assumed, not simulated.",
    ),
    Caveat(
        about="memory",
        text="3.9 GiB a GPU for activations and communication is a planning figure of NVIDIA's; "
        "engines may need 2 to 8 GiB.",
    ),
)

KIMI = (
    Caveat(
        about="distinct_experts",
        text="Overlap of routing is assumed: 0.33 of a token's experts recur in the next tokens of "
        "its sequence (Cohere saw 0.30 to 0.38 of 8 among 128, "
        "https://cohere.com/blog/mixture-of-experts-models-get-more-from-speculative-decoding), "
        "1.9 times chance across sequences. DeepSeek-V3.1, the nearest relative, is reported to "
        "have almost none. The upper ends of the intervals hold independent routing, which costs "
        "verification most at batch 4 to 32.",
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
        text="The attention table ends at 1024 tokens; batch 128 with 9 tokens and batch 256 with "
        "5 or more continue its last slope.",
    ),
    Caveat(
        about="sparse layers",
        text="The INT4 kernel's time beyond 128 tokens is the mean of even and of skewed routing, "
        "each of which lies up to 19 % off it.",
    ),
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
