"""Prediction layers draft what transformers' own generation drafts with them."""

import copy
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402
from transformers.generation.candidate_generator import MTPCandidateGenerator  # noqa: E402

from capplan.errors import InputError  # noqa: E402
from capplan.profiler.cached import CachedModel  # noqa: E402
from capplan.profiler.speculation.mtp import MtpDrafter  # noqa: E402
from capplan.profiler.speculation.rounds import Decoding, decode  # noqa: E402

pytestmark = pytest.mark.torch

LAYERS = 46
"""Of GLM-4.5-Air: transformers knows its prediction layer by the number behind them."""
VOCABULARY = 80
SIZE = 32


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("mtp")
    torch.manual_seed(0)
    config = transformers.Glm4MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=SIZE,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        first_k_dense_replace=LAYERS,
        initializer_range=0.2,
        num_mtp_layers=1,
        n_routed_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=8,
        pad_token_id=None,
        eos_token_id=None,
        bos_token_id=None,
        architectures=["Glm4MoeForCausalLM"],
    )
    longer = copy.deepcopy(config)
    longer.num_hidden_layers = LAYERS + 1
    transformers.Glm4MoeForCausalLM(longer).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    own = f"model.layers.{LAYERS}."
    weights |= {
        f"{own}{name}.weight": torch.ones(SIZE) for name in ("enorm", "hnorm", "shared_head.norm")
    }
    weights[f"{own}eh_proj.weight"] = 0.2 * torch.randn(SIZE, 2 * SIZE)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()


def test_drafts_are_those_of_transformers(model: object, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[int], list[int]]] = []
    propose = MTPCandidateGenerator.get_candidates

    def listen(self: object, input_ids: torch.Tensor, *rest: object, **more: object) -> object:
        found = propose(self, input_ids, *rest, **more)
        text = input_ids[0].tolist()
        seen.append((text, found[0][0, len(text) :].tolist()))
        return found

    monkeypatch.setattr(MTPCandidateGenerator, "get_candidates", listen)
    prompt = torch.randint(VOCABULARY, (1, 12), generator=torch.Generator().manual_seed(1))
    model.generate(prompt, use_mtp=True, do_sample=False, max_new_tokens=16)
    drafter = MtpDrafter(model, 1)
    compared = [(text, drafts) for text, drafts in seen if drafts]
    assert len(compared) >= 8
    for text, drafts in compared:
        assert drafter.draft(text, 1, np.random.default_rng(0)).tokens == tuple(drafts)


def test_greedy_text_stays_the_targets(model: object) -> None:
    how = Decoding(1, temperature=0.0, max_tokens=10, ends=())
    prompt = list(range(12))
    reader = CachedModel(model, VOCABULARY)
    found = decode(reader, MtpDrafter(model, 1), prompt, how, np.random.default_rng(0))
    text = list(prompt)
    for token in found.tokens:
        text.append(int(reader.logits(text, last=1)[0].argmax()))
        assert token == text[-1]


def test_no_more_drafts_than_layers(model: object) -> None:
    with pytest.raises(InputError, match="the checkpoint's 1 layers"):
        MtpDrafter(model, 2)


def test_weights_that_are_missing_are_told(model: object, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)  # without the layer behind the last
    bare = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    with pytest.raises(InputError, match="cannot load its prediction layers"):
        MtpDrafter(bare, 1)
