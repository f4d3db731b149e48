"""Real configuration files against what the models' makers publish.

This project counts the text model once, without vision towers and without heads for multi-token
prediction; `active` holds embedding and output head. Where a maker counts otherwise, or a model's
name rounds, the difference is named here, with both numbers.
"""

import pytest

import real_configs as real
from capplan.errors import InputError
from capplan.physics.cache import cache_by_kind, kv_bytes_per_token, state_bytes_per_sequence
from capplan.physics.parameters import Parameters, count_parameters

BF16 = 2

# file: (this project's count, what was published, why they differ) [1e9]
NAMES_ROUND = {
    "Qwen__Qwen2.5-32B-Instruct": (32.764, 32, "its card says 32.5 B"),
    "Qwen__Qwen3-32B": (32.762, 32, "its card says 32.8 B"),
    "Qwen__Qwen3-32B-FP8-Static-PerTensor": (32.762, 32, "its card says 32.8 B"),
    "Qwen__Qwen3-VL-32B-Instruct": (32.762, 32, "the text model is Qwen3-32B"),
    "Qwen__Qwen3-VL-32B-Thinking": (32.762, 32, "the text model is Qwen3-32B"),
    "google__gemma-4-26B-A4B": (25.233, 26, "the name holds a vision tower of 0.6 B"),
    "nvidia__Gemma-4-26B-A4B-NVFP4": (25.233, 26, "the name holds a vision tower of 0.6 B"),
    "meta-llama__Llama-3.2-90B-Vision-Instruct": (87.667, 90, "88.6 B with its vision tower"),
    "moonshotai__Kimi-K2-Instruct": (1026.408, 1000, "1T has one digit"),
    "moonshotai__Kimi-K2.5": (1026.408, 1000, "1T has one digit"),
    "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4": (31.578, 30, "its report says 31.6 B"),
    "nvidia__NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4": (31.578, 30, "as Nemotron 3 Nano"),
    # The same file as openai/gpt-oss-120b but for torch_dtype, filed with the name's number.
    "openai__gpt-oss-120b_OME": (116.829, 120, "its card says 117 B"),
}
# Active parameters that leave out the embedding, or the output head as well.
WITHOUT_EMBEDDING = {
    "MiniMaxAI__MiniMax-M2.5",
    "Qwen__Qwen2.5-32B-Instruct",
    "Qwen__Qwen3-32B",
    "Qwen__Qwen3-32B-FP8-Static-PerTensor",
    "Qwen__Qwen3-VL-32B-Instruct",
    "Qwen__Qwen3-VL-32B-Thinking",
    "deepseek-ai__DeepSeek-V2-Lite-Chat",
    "moonshotai__Kimi-K2-Instruct",
    "moonshotai__Kimi-K2.5",
    "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4",
    "nvidia__NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
    "nvidia__NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4",
    "openai__gpt-oss-120b",
    "openai__gpt-oss-20b",
}
WITHOUT_BOTH = {"Qwen__Qwen3-Next-80B-A3B-Instruct", "zai-org__GLM-4.5-Air"}
# Dense models that are filed with their name's number once more.
DENSE_NAMES = {"meta-llama__Llama-3.2-90B-Vision-Instruct", "openai__gpt-oss-120b_OME"}

# file: a key that is complained of.
REFUSED = {
    "CohereForAI__c4ai-command-r-v01_OME": "model_type",
    "CohereLabs__North-Mini-Code": "model_type",
    "Qwen__Qwen1.5-MoE-A2.7B-Chat": "dtype",
    "Qwen__Qwen3.5-35B-A3B_OME-SUSPECT": "text_config.linear_num_value_heads",
    "baidu__ERNIE-4.5-21B-A3B-PT": "max_position_embeddings",
    "databricks__dbrx-instruct_OME": "model_type",
    "ibm-granite__granite-3.1-3b-a800m-instruct": "dtype",
    "rednote-hilab__dots.llm1.inst": "architectures",
    "tencent__Hunyuan-A13B-Instruct": "model_type",
    "xai-org__grok-1_NATIVE": "model_type",
    "zai-org__GLM-4.5-Air_MB": "model_type",
    "zai-org__GLM-4.5": "model_type",
}
READ = sorted(real.ENTRIES.keys() - REFUSED.keys())
WITH_TOTAL = [file for file in READ if real.ENTRIES[file]["total"]]
WITH_ACTIVE = [file for file in READ if real.ENTRIES[file]["active"]]

# Figures of makers that the files' list does not have: total, active [1e9].
ALSO_PUBLISHED = {
    "deepseek-ai__DeepSeek-V4-Flash": (284, 13),  # model card
    "deepseek-ai__DeepSeek-V4-Pro": (1600, 49),
    "zai-org__GLM-5": (744, 40),  # GLM-5 report, table of configurations
    "XiaomiMiMo__MiMo-V2-Flash": (309, 15),
}


def counted(file: str) -> Parameters:
    return count_parameters(real.read(file))


def tolerance(published: float) -> float:
    """2 %, or half of the last digit that is printed."""
    digit = 0.1e9 if published % 1e9 else 1e9
    return max(0.02 * published, digit / 2)


def test_every_file_is_read_or_refused() -> None:
    assert len(real.ENTRIES) == 105
    verbatim = [file for file, entry in real.ENTRIES.items() if entry["trust"] == "verbatim"]
    assert len(verbatim) > 60
    assert not REFUSED.keys() & set(verbatim)


@pytest.mark.parametrize("file", WITH_TOTAL)
def test_totals_are_those_that_were_published(file: str) -> None:
    total, published = counted(file).total, real.ENTRIES[file]["total"]
    if file in NAMES_ROUND:
        ours, named, _ = NAMES_ROUND[file]
        assert total == pytest.approx(ours * 1e9, rel=1e-4)
        assert published == named * 1e9
        assert abs(total - published) > tolerance(published)
        assert total == pytest.approx(published, rel=0.06)
    else:
        assert total == pytest.approx(published, abs=tolerance(published))


@pytest.mark.parametrize("file", sorted(set(WITH_ACTIVE) - DENSE_NAMES))
def test_active_parameters_are_those_that_were_published(file: str) -> None:
    found, published = counted(file), real.ENTRIES[file]["active"]
    without = found.active_without_embedding
    if file in WITHOUT_BOTH:
        number = without - found.head
    else:
        number = without if file in WITHOUT_EMBEDDING else found.active
    if file in WITHOUT_EMBEDDING | WITHOUT_BOTH:
        assert abs(found.active - published) > tolerance(published)
    assert number == pytest.approx(published, abs=tolerance(published) + 0.003e9)


@pytest.mark.parametrize("file", sorted(ALSO_PUBLISHED))
def test_counts_agree_with_model_cards(file: str) -> None:
    total, active = (figure * 1e9 for figure in ALSO_PUBLISHED[file])
    found = counted(file)
    assert found.total == pytest.approx(total, rel=0.02)
    choices = [found.active_without_embedding, found.active_without_embedding - found.head]
    assert min(abs(choice - active) for choice in choices) <= tolerance(active)


def test_a_card_that_cuts_instead_of_rounding() -> None:
    # MiniMax-M3's says about 428 B with a vision tower and about 23 B activated.
    found = counted("MiniMaxAI__MiniMax-M3")
    assert found.total == pytest.approx(428e9, rel=0.02)
    assert found.active_without_embedding - found.head == pytest.approx(23.504e9, rel=1e-4)


def test_a_whole_checkpoint_to_the_last_parameter() -> None:
    # huggingface.co counts 763,205,315,794 in the safetensors of DeepSeek-V4.1-Flash; of these a
    # vision tower and its aligner have 485,268,480, and routers of 40 layers with 384 experts and 3
    # with 128 have a second bias for images. A third of it are tables for hashed tokens.
    found = counted("deepseek-ai__DeepSeek-V4.1-Flash")
    assert found.in_memory + 485_268_480 + 40 * 384 + 3 * 128 == 763_205_315_794
    assert found.lookup_tables == 196_613_849_600
    assert found.prediction == 14_225_362_146


def test_a_checkpoint_holds_its_prediction_layer_too() -> None:
    # huggingface.co counts 753.3 B in GLM-5.3-FP8; its makers say 744 B.
    assert counted("zai-org__GLM-5.3-FP8").in_memory == pytest.approx(753.3e9, rel=1e-4)


def test_latent_experts_are_counted_in_their_small_space() -> None:
    # 2.8 T by its announcement; 5.5 T if the experts worked in the hidden size.
    assert counted("moonshotai__Kimi-K3").total == pytest.approx(2.8e12, rel=0.02)


@pytest.mark.parametrize("file", sorted(REFUSED))
def test_what_is_abridged_altered_or_unknown_is_refused_by_name(file: str) -> None:
    with pytest.raises(InputError) as caught:
        real.read(file)
    found = {complaint.key: str(complaint) for complaint in caught.value.complaints}
    assert REFUSED[file] in found
    missing = "Take the checkpoint's own config.json"
    assert any(word in found[REFUSED[file]] for word in ("Known: ", missing))


@pytest.mark.parametrize(
    ("file", "kv_bytes"),
    [
        ("deepseek-ai__DeepSeek-V3", 70_272),  # "about 70 KB"
        ("Qwen__Qwen3-30B-A3B", 98_304),
        ("meta-llama__Meta-Llama-3.1-70B", 327_680),
        ("openai__gpt-oss-120b", 18 * 2 * 8 * 64 * 2),  # every second layer has a window
        ("Qwen__Qwen3-Next-80B-A3B-Instruct", 12 * 2 * 2 * 256 * 2),
        ("nvidia__NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 12 * 2 * 2 * 128 * 2),
        ("nvidia__Llama-3_3-Nemotron-Super-49B-v1", 49 * 2 * 8 * 128 * 2),
        # Latent vector, rotary key and an index key a layer; in GLM-5.2 only 21 layers have one.
        ("zai-org__GLM-5", 78 * (512 + 64 + 128) * 2),
        ("zai-org__GLM-5.2", (78 * (512 + 64) + 21 * 128) * 2),
        # 21 layers keep a vector for 4 tokens with an index key, 20 one for 128.
        ("deepseek-ai__DeepSeek-V4-Flash", (21 * (512 + 128) / 4 + 20 * 512 / 128) * 2),
        # Three layers keep a vector and an index key for two tokens, one for each.
        ("deepseek-ai__DeepSeek-V4.1-Flash", 2.5 * (512 + 128) * 2),
    ],
)
def test_a_token_of_context_adds_what_its_layers_keep(file: str, kv_bytes: float) -> None:
    assert kv_bytes_per_token(real.read(file), BF16) == kv_bytes


@pytest.mark.parametrize(
    ("file", "state_bytes"),
    [
        ("openai__gpt-oss-120b", 18 * 128 * 2 * 8 * 64 * 2),
        ("meta-llama__Meta-Llama-3.1-70B", 0),
        # 36 layers: 32 heads of 128x128 in float32, and three inputs of a convolution.
        ("Qwen__Qwen3-Next-80B-A3B-Instruct", 36 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)),
        # 69 layers of 96 heads of 128x128.
        ("moonshotai__Kimi-K3", 69 * (96 * 128 * 128 * 4 + 3 * 3 * 96 * 128 * 2)),
        (
            "nvidia__Nemotron-H-56B-Base-8K",
            54 * (256 * 64 * 256 * 4 + 3 * (256 * 64 + 2 * 8 * 256) * 2),
        ),
    ],
)
def test_states_and_windows_do_not_grow(file: str, state_bytes: float) -> None:
    model = real.read(file)
    rows = cache_by_kind(model.layer_kinds, BF16)
    assert state_bytes_per_sequence(model, BF16) == state_bytes
    assert sum(row.kind.layers for row in rows) == sum(k.layers for k in model.layer_kinds)
