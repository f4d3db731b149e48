"""`capplan show`, as a user runs it."""

import json
from pathlib import Path

import pytest

import real_configs as real

ROOT = Path(__file__).parents[2]
EAGLE = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_hidden_layers": 1,
    "num_key_value_heads": 8,
    "torch_dtype": "float16",
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
}
"""https://github.com/sgl-project/SpecForge configs/llama3-70B-ealge3.json, what matters of it."""


QUANTISED = "nvidia__Qwen3.6-35B-A3B-NVFP4"


def write_checkpoint(folder: Path, file: str) -> Path:
    entry = real.ENTRIES[file]
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(entry["config"]))
    if "quant" in entry:
        beside = real.expanded(entry["quant"])
        (folder / "hf_quant_config.json").write_text(json.dumps(beside))
    return folder


def shown(capplan, *arguments: str) -> dict:
    ran = capplan("show", *arguments, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    ("name", "total", "active", "counted_as", "kv_bytes"),
    [
        ("mixtral-8x7b", 46.7e9, 12.9e9, "parameters_active", 131_072),
        ("deepseek-v3", 671e9, 37e9, "parameters_active_without_embedding", 70e3),
        ("qwen3-30b-a3b", 30.5e9, 3.3e9, "parameters_active", 98e3),
        ("kimi-k2", 1e12, 32e9, "parameters_active_without_embedding", 70e3),
        ("gpt-oss-120b", 117e9, 5.1e9, "parameters_active_without_embedding", 36_864),
        ("llama-3.1-70b", 70.6e9, 70.6e9, "parameters_active", 328e3),
    ],
)
def test_the_figures_that_everybody_knows(capplan, name, total, active, counted_as, kv_bytes):
    found = shown(capplan, name, "--kv-precision", "bf16")
    assert found["parameters_total"] == pytest.approx(total, rel=0.03)
    assert found[counted_as] == pytest.approx(active, rel=0.02)
    assert found["kv_bytes_per_token"] == pytest.approx(kv_bytes, rel=0.004)


def test_a_model_on_gpus_in_80_columns(capplan):
    ran = capplan(
        "show",
        "deepseek-v3",
        *["--on", "h200-sxm:8", "--context", "8k", "--precision", "fp8", "--draft-tokens", "2"],
    )
    assert ran.returncode == 0, ran.stderr
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "…" not in ran.stdout
    for words in (
        "Where the bytes are",
        "routed experts",
        "prediction layers",
        "What a sequence keeps (bf16 cache)",
        "experts (modelled)",
        "On 8 x h200-sxm: TP against EP",
        "experts a GPU, a layer",
        "with mtp, 2 drafted",
        "all-to-alls, layers",
        "Batch where it turns compute-bound",
        "What makes room for more sequences",
        "90% of each GPU, less 3.9 GiB",
    ):
        assert words in ran.stdout, words


def test_a_sparse_model_and_its_drafter_side_by_side(capplan):
    fit = shown(capplan, "deepseek-v3", *["--on", "h200-sxm:8", "--precision", "fp8"])["fit"]
    asked, copies = fit["asked"]["share"], fit["others"][-1]["share"]
    assert (asked["experts_per_gpu"], asked["expert_slices"]) == (256, 8)
    assert (copies["experts_per_gpu"], copies["expert_slices"]) == (32, 1)
    assert asked["sequences"] > asked["sequences_with_drafter"] > 0
    assert copies["sequences"] > 4 * asked["sequences"]  # a latent cache is not split by heads
    assert fit["drafter"]["name"] == "mtp"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("qwen3-30b-a3b --on h200-sxm:12", "--tp: must divide the 32 attention heads, found 12"),
        ("qwen3-30b-a3b --on h200-sxm:8 --ep 3", "--ep: must divide the replica's 8 GPUs"),
        ("qwen3-30b-a3b --on h200-sxm:256 --tp 1 --ep 256", "not be larger than the 128 experts"),
        ("mixtral-8x7b --on h200-sxm:12 --tp 4", "which must divide its width of 14336"),
        ("llama-3.1-8b --on h200-sxm:8 --ep 8", "--ep: needs routed experts"),
        ("llama-3.1-8b --on h200-sxm:1 --precision nvfp4", "cannot compute in it, only in bf16"),
        (
            "llama-3.1-8b --on h100:8",
            "is not a GPU of any known fleet, found h100\n    known: h200",
        ),
        ("llama-3.1-8b --on h200-sxm", "needs a kind of GPU and a number up to 4096"),
        ("llama-3.1-8b --on h200-sxm:99999", "needs a kind of GPU and a number up to 4096"),
        ("llama-3.1-8b --context 8kb", "--context: needs tokens from 1 to"),
        ("llama-3.1-8b --on h200-sxm:1 --tp 0", "--tp: needs a whole number from 1 to"),
        ("llama-3.1-8b --tp 2", "--tp: needs GPUs, found 2"),
        ("llama-3.1-8b --drafter mtp", "--drafter: needs GPUs, found mtp"),
        ("llama-3.1-8b --on h200-sxm:1 --drafter mtp", "has no head for multi-token prediction"),
        ("llama-3.1-8b --on h200-sxm:1 --drafter qwen3-0.6b", "the model's vocabulary of 128256"),
        ("llama-3.1-9b", "did you mean llama-3.1-8b"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(capplan, arguments, told):
    ran = capplan("show", *arguments.split())
    assert ran.returncode == 1
    assert told in ran.stderr
    assert not ran.stdout
    assert "Traceback" not in ran.stderr


def test_weights_that_do_not_fit_are_infeasible_and_say_what_would_do(capplan):
    ran = capplan("show", "kimi-k2", "--on", "h200-sxm:8", "--precision", "bf16")
    assert ran.returncode == 3
    assert "nearest feasible: --on h200-sxm:16 --tp 16 --ep 1" in ran.stderr
    words = ran.stderr.rpartition("feasible: ")[2].split()
    assert capplan("show", "kimi-k2", "--precision", "bf16", *words).returncode == 0


@pytest.mark.parametrize("file", ["", "config.json"])
def test_a_checkpoint_is_its_folder_or_its_file(capplan, file):
    folder = write_checkpoint(capplan.folder / "My-Model", "Qwen__Qwen3-30B-A3B")
    found = shown(capplan, str(folder / file))
    assert found["model"] == "my-model"
    assert found["parameters_total"] == pytest.approx(30.5e9, rel=0.01)


def test_what_a_checkpoint_says_beside_its_configuration_counts(capplan):
    folder = write_checkpoint(capplan.folder / "narrow", QUANTISED)
    found = shown(capplan, str(folder))
    experts = next(one for one in found["components"] if one["name"] == "routed_experts")
    assert experts["bits"] == 4.5
    ran = capplan("show", str(folder), "--on", "h200-sxm:8")
    assert "nvfp4 weights are unpacked" in " ".join(ran.stdout.split())


def test_a_drafter_of_another_file_takes_room(capplan):
    drafter = capplan.folder / "eagle.json"
    drafter.write_text(json.dumps(EAGLE))
    on = ("llama-3.1-70b", "--on", "h200-sxm:4", "--drafter")
    fit = shown(capplan, *on, str(drafter))["fit"]
    assert fit["drafter"]["name"] == "eagle"
    # Two joined inputs of 64 heads over 8 keys, a feed-forward layer, three states, a small head.
    layer = 2 * 8192 * 80 * 128 + 8192**2 + 3 * 8192 * 28672
    assert fit["drafter"]["parameters"] == pytest.approx(
        layer + 3 * 8192**2 + 32000 * 8192, rel=1e-3
    )
    assert fit["drafter"]["kv_bytes_per_token"] == 2 * 8 * 128 * 2
    share = fit["asked"]["share"]
    assert 0 < share["sequences_with_drafter"] < share["sequences"]
    small = shown(capplan, *on, "llama-3.1-8b", "--draft-tokens", "5")["fit"]
    assert small["drafter"]["draft_tokens"] == 5
    assert small["asked"]["share"]["sequences_with_drafter"] < share["sequences_with_drafter"]


def test_a_known_drafter_is_named(capplan):
    on = ("kimi-k2.5", "--on", "h200-sxm:8", "--drafter", "eagle3-kimi-k2")
    drafter = shown(capplan, *on)["fit"]["drafter"]
    # 64 heads of 128 over as many keys, whose first layer sees two vectors; a head of 163840 rows.
    layer = 2 * 7168 * 3 * 8192 + 7168 * 8192 + 3 * 7168 * 12288
    whole = layer + 3 * 7168**2 + 163840 * 7168
    assert drafter["parameters"] == pytest.approx(whole, rel=1e-3)


def test_no_drafter_is_loaded_where_none_is_wanted(capplan):
    fit = shown(capplan, *["deepseek-v3", "--on", "h200-sxm:8", "--drafter", "none"])["fit"]
    assert fit["drafter"] is None
    assert fit["asked"]["share"]["sequences_with_drafter"] is None


def test_other_gpus_of_a_fleet_are_a_remedy(capplan):
    text = (ROOT / "fleets" / "dgx-h200.yaml").read_text()
    start = text.index("  h200-sxm:\n    memory_bytes")
    block = text[start : text.index("nodes:")]
    larger = block.replace("h200-sxm:\n", "larger:\n").replace("150755868672", "301511737344")
    (capplan.folder / "two.yaml").write_text(text.replace(block, block + larger))
    fit = shown(capplan, *["llama-3.1-70b", "--on", "h200-sxm:2", "--fleet", "two.yaml"])["fit"]
    (row,) = [one for one in fit["remedies"] if one["lever"] == "gpu"]
    assert row["change"] == "--on larger:2"
    assert row["gained"] == row["sequences"] - fit["asked"]["share"]["sequences"] > 0


def test_contexts_longer_than_the_model_takes_are_said(capplan):
    found = shown(capplan, "mixtral-8x7b", "--context", "1M")
    assert found["context_tokens"] == 1024**2
    assert any("more than the 32,768" in one["text"] for one in found["caveats"])
