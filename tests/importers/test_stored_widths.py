"""Bytes of real checkpoints, and the widths that their configurations state."""

import pytest

import real_configs as real
from capplan.physics.parameters import count_parameters
from capplan.physics.stored_bytes import stored_bytes


@pytest.mark.parametrize(
    ("file", "size_bytes"),
    [
        ("openai__gpt-oss-120b", 60.8 * 2**30),  # gpt-oss model card (arXiv 2508.10925), table 1
        ("openai__gpt-oss-20b", 12.8 * 2**30),
        ("moonshotai__Kimi-K2.5", 594e9),  # model card of Kimi-K2-Thinking, the same anatomy
        # All safetensors, less a vision tower of 0.97e9 bytes.
        ("deepseek-ai__DeepSeek-V4.1-Flash", 510_286_023_000 - 0.97e9),
    ],
)
def test_bytes_are_those_of_the_checkpoints(file: str, size_bytes: float) -> None:
    model = real.read(file)
    assert model.stored is not None
    found = stored_bytes(count_parameters(model), model.stored)
    assert sum(found.values()) == pytest.approx(size_bytes, rel=0.005)


@pytest.mark.parametrize(
    ("file", "widths"),
    [
        ("Qwen__Qwen3-30B-A3B", {"attention": 16, "routed_experts": 16, "kv_cache": None}),
        ("google__gemma-2-9b", {"attention": 32, "embedding": 32}),
        ("deepseek-ai__DeepSeek-V3", {"attention": 8.002, "head": 16, "prediction": 8.002}),
        ("moonshotai__Kimi-K2.5", {"routed_experts": 4.5, "shared_experts": 16, "dense": 16}),
        # The first and last layer of 126 stay as they are.
        ("meta-llama__Llama-3.1-405B-Instruct", {"dense": 8 + 8 * 2 / 126}),
        ("nvidia__MiniMax-M2.5-NVFP4", {"routed_experts": 4.5, "attention": 16, "kv_cache": 8}),
        ("nvidia__GLM-5.1-NVFP4", {"routed_experts": 4.5, "dense": 16, "prediction": 16}),
        ("nvidia__Gemma-4-31B-IT-NVFP4", {"dense": 4.5, "attention": 16}),
        # The output projection alone has four bits, 128x128x7168 of 187e6.
        ("nvidia__DeepSeek-V3.2-NVFP4", {"attention": 9.2829, "shared_experts": 4.5}),
        ("nvidia__Qwen3.6-35B-A3B-NVFP4", {"head": 4.5, "routed_experts": 4.5, "prediction": 16}),
        ("deepseek-ai__DeepSeek-V4-Flash", {"routed_experts": 4.25, "shared_experts": 8.0005}),
        ("nvidia__DeepSeek-V4-Flash-NVFP4", {"routed_experts": 4.5, "prediction": 4.3254}),
        ("sgl-project__DeepSeek-V4-Flash-FP8", {"routed_experts": 8.0005}),
        ("openai__gpt-oss-20b", {"routed_experts": 4.25, "attention": 16}),
        ("nvidia__Llama-3.1-70B-Instruct-FP8", {"attention": 8, "dense": 8, "kv_cache": 8}),
    ],
)
def test_widths_are_those_that_the_files_state(file: str, widths: dict[str, float | None]) -> None:
    stored = real.read(file).stored
    assert stored is not None
    found = stored.model_dump()
    for part, width in widths.items():
        assert found[part] == (None if width is None else pytest.approx(width, abs=1e-4)), part


def test_exceptions_that_are_not_listed_are_said_to_be_missing() -> None:
    stored = real.read("nvidia__NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4").stored
    assert stored is not None
    assert stored.scheme == "nvfp4, no exceptions listed"
