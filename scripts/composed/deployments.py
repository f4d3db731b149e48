"""The two deployments as compositions: every term with its source."""

from capplan.physics.attention import Attention
from capplan.physics.composition import AllReduce, Composition, DraftHead, LayerCost
from capplan.physics.experts import Routing, independent_routing
from capplan.records.caveat import Source
from composed import silicon

FIXED_S = 0.5e-3
FIXED = Source(
    what="host, scheduling and sampling that kernels do not hide, 0.5 ms a step",
    where="assumed, 0 to 2 ms",
)
ROUND_S = 1.0e-3
ROUND = Source(
    what="rejection sampling and preparing of inputs, 1.0 ms a round of speculation",
    where="assumed, 0.3 to 2.4 ms; upper end from EAGLE-3 on gpt-oss-120b, 3.15 ms at 3 and "
    "4.33 ms at 8 drafted tokens (https://github.com/vllm-project/vllm/issues/32628)",
)

KIMI_EXPERTS = 384
KIMI_EXPERTS_PER_TOKEN = 8
KIMI_HIDDEN = 7168
KIMI_OVERLAP_WITHIN = 0.33
KIMI_OVERLAP_ACROSS = 1.9 * KIMI_EXPERTS_PER_TOKEN / KIMI_EXPERTS
KIMI_SPARSE = "moe-int4-384-8-tp8"
LLAMA_HIDDEN = 8192
LLAMA_TILES = "gemm-fp8-2560x8192"
"""The piece whose tokens show the FP8 kernels' tiles; other widths are published at the same."""

PREFILL = "fitted base + a n + b n²/2"


def kimi_independent() -> Routing:
    """Kimi's experts chosen independently: the upper end of what a step touches."""
    return independent_routing(KIMI_EXPERTS, KIMI_EXPERTS_PER_TOKEN)


def kimi_overlapping() -> Routing:
    """Kimi's experts with the overlap that is assumed."""
    return Routing(
        KIMI_EXPERTS, KIMI_EXPERTS_PER_TOKEN, across=KIMI_OVERLAP_ACROSS, within=KIMI_OVERLAP_WITHIN
    )


def kimi_misfit() -> silicon.Misfit:
    """How far Kimi's sparse layers lie off the rows they are fitted to."""
    return silicon.misfit(KIMI_SPARSE, silicon.sparse_kernel(KIMI_SPARSE, kimi_overlapping()))


def kimi(routing: Routing, fixed_s: float = FIXED_S) -> Composition:
    """Kimi-K2.5, INT4 experts, TP8 on 8 H200."""
    norms = silicon.small_kernels(
        "two norms and the shared expert's activation", kernels=3, bytes_per_row=16 * KIMI_HIDDEN
    )
    shared = (
        silicon.curve("gemm-bfloat16-512x7168", "shared expert, gate and up"),
        silicon.curve("gemm-bfloat16-7168x256", "shared expert, down"),
        silicon.curve("gemm-bfloat16-512x7168", "router, the nearest published width to 384"),
    )
    dense = silicon.matrices(
        "feed-forward of the one dense layer", weights=3 * KIMI_HIDDEN * 18432 / 8, launches=2
    )
    sparse = silicon.sparse_kernel(KIMI_SPARSE, routing)
    return Composition(
        fixed_s=fixed_s,
        fixed_source=FIXED,
        layers=(LayerCost(1, (dense, norms)), LayerCost(60, (*shared, norms), sparse)),
        attention=_latent_attention(),
        all_reduce=_all_reduce(8, KIMI_HIDDEN),
        head=silicon.matrices("output head", weights=163840 * KIMI_HIDDEN / 8, launches=1),
    )


def _latent_attention() -> Attention:
    base = silicon.continued(
        silicon.curve("mla-8-heads", "attention module with projections"), size=256 * 9
    )
    token_s, pair_s = silicon.prefill_fit("mla-8-heads-prefill", base.times_s[0])
    kv_s, read = silicon.cached_token_s("mla-8-heads-cache", "reading the latent cache")
    lone_s, alone = silicon.cached_token_s("mla-8-heads-cache-alone", "the same for one sequence")
    wide_s, wide = silicon.cached_token_s(
        "mla-128-heads-cache", "arithmetic of latent attention, 128 query rows"
    )
    expand = 2 * 512 * 8 * (128 + 128)
    return Attention(
        base=base,
        base_by_token=True,
        rows_per_token=8,
        tile_rows=64,
        kv_s=kv_s,
        row_kv_s=wide_s / 128,
        lone_kv_s=lone_s,
        prefill_token_s=token_s,
        prefill_pair_s=pair_s,
        cached_s=expand / (0.5 * 989e12),
        sources=(base.source,),
        decode_sources=(read, alone, wide),
        prefill_sources=(silicon.source("mla-8-heads-prefill", "prefill attention", PREFILL),),
        cached_sources=(
            silicon.H200.model_copy(
                update={"what": "expanding cached latents in prefill at 50 % of bf16, assumed"}
            ),
        ),
    )


def llama(fixed_s: float = FIXED_S) -> Composition:
    """Llama-3.1-70B, FP8 weights, bf16 cache, TP4 on 4 H200."""
    products = (
        silicon.curve("gemm-fp8-2560x8192", "query, key and value projections"),
        silicon.curve("gemm-fp8-8192x2048", "output projection"),
        silicon.between(
            ("gemm-fp8-12288x8192", "gemm-fp8-16384x8192"), weight=0.5, what="gate and up, n 14336"
        ),
        silicon.curve("gemm-fp8-8192x7168", "down"),
    )
    small = silicon.small_kernels(
        "two norms, rotation with cache write, activation, quantising",
        kernels=5,
        bytes_per_row=18 * LLAMA_HIDDEN + 5 * 7168,
    )
    return Composition(
        fixed_s=fixed_s,
        fixed_source=FIXED,
        layers=(LayerCost(80, (*products, small)),),
        attention=_grouped_attention(),
        all_reduce=_all_reduce(4, LLAMA_HIDDEN),
        head=silicon.matrices("output head, bf16", weights=128256 * LLAMA_HIDDEN / 4, launches=1),
    )


def _grouped_attention() -> Attention:
    base = silicon.curve("gqa-16-2-128", "attention kernel", by="sequences")
    token_s, pair_s = silicon.prefill_fit("gqa-16-2-128-prefill", base.times_s[0])
    kv_s, read = silicon.cached_token_s("gqa-16-2-128-cache", "reading keys and values")
    lone_s, alone = silicon.cached_token_s("gqa-16-2-128-cache-alone", "the same for one sequence")
    rows = silicon.source(
        "gqa-16-2-128-prefill", "arithmetic a query row", f"{PREFILL}; b over the 8 rows of a pair"
    )
    return Attention(
        base=base,
        base_by_token=False,
        rows_per_token=8,
        tile_rows=64,
        kv_s=kv_s,
        row_kv_s=pair_s / 8,
        lone_kv_s=lone_s,
        prefill_token_s=token_s,
        prefill_pair_s=pair_s,
        cached_s=kv_s,
        sources=(base.source,),
        decode_sources=(read, alone, rows),
        prefill_sources=(silicon.source("gqa-16-2-128-prefill", "prefill attention", PREFILL),),
        cached_sources=(read,),
    )


def kimi_drafter() -> DraftHead:
    """EAGLE-3 for Kimi-K2.5: 64 heads, width 12288, full vocabulary, on all 8 GPUs."""
    qkv, out = 2 * KIMI_HIDDEN * 3 * 64 * 128, KIMI_HIDDEN * 64 * 128
    return _drafter(
        gpus=8,
        hidden=KIMI_HIDDEN,
        layer=qkv + out + 3 * KIMI_HIDDEN * 12288,
        vocabulary=163840,
        kv_bytes_per_token=2 * 64 * 128 * 2,
    )


def llama_drafter() -> DraftHead:
    """EAGLE-3 for Llama-3.1-70B: 64 heads over 8 keys, width 28672, 32000 draft tokens."""
    qkv, out = 2 * LLAMA_HIDDEN * (64 + 2 * 8) * 128, LLAMA_HIDDEN * 64 * 128
    return _drafter(
        gpus=4,
        hidden=LLAMA_HIDDEN,
        layer=qkv + out + 3 * LLAMA_HIDDEN * 28672,
        vocabulary=32000,
        kv_bytes_per_token=2 * 8 * 128 * 2,
    )


def _drafter(
    gpus: int, hidden: int, layer: float, vocabulary: int, kv_bytes_per_token: float
) -> DraftHead:
    layer_cost = silicon.matrices("drafter's layer, eight kernels", layer / gpus, launches=8)
    return DraftHead(
        round_s=ROUND_S,
        round_source=ROUND,
        fuse=silicon.matrices("drafter's joining of features", 3 * hidden**2 / gpus, launches=1),
        layer=layer_cost,
        head=silicon.matrices("drafter's head", vocabulary * hidden / gpus, launches=1),
        kv_s=kv_bytes_per_token / gpus / silicon.BANDWIDTH_BYTES_PER_S,
        all_reduce=_all_reduce(gpus, hidden),
    )


def _all_reduce(gpus: int, hidden: int) -> AllReduce:
    return AllReduce(silicon.curve(f"all-reduce-{gpus}", "all-reduce", by="elements"), hidden)
