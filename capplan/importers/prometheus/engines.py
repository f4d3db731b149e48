"""What engines call their counters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """Names of an engine's series; all of them carry the label `model_name`."""

    name: str
    requests: str
    """Counter of requests that were answered."""
    prompt: str | None = None
    """Histogram of prompt lengths, without its suffix."""
    output: str | None = None
    cached: str | None = None
    """Counter of prompt tokens that a cache had."""
    asked: str | None = None
    """Counter of prompt tokens that were looked for in it."""


ENGINES = (
    # As /metrics of vLLM 0.32 has them.
    Engine(
        "vLLM",
        requests="vllm:request_success_total",
        prompt="vllm:request_prompt_tokens",
        output="vllm:request_generation_tokens",
        cached="vllm:prefix_cache_hits_total",
        asked="vllm:prefix_cache_queries_total",
    ),
    # Histograms only with --collect-tokens-histogram.
    Engine(
        "SGLang",
        requests="sglang:num_requests_total",
        prompt="sglang:prompt_tokens_histogram",
        output="sglang:generation_tokens_histogram",
        cached="sglang:cached_tokens_total",
        asked="sglang:prompt_tokens_total",
    ),
    # It keeps no histogram of lengths.
    Engine(
        "TensorRT-LLM",
        requests="trtllm_request_success_total",
        cached="trtllm_prompt_tokens_cached_total",
        asked="trtllm_prompt_tokens_total",
    ),
)
