"""A model that remembers says what one that reads everything anew says."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capplan.errors import InputError  # noqa: E402
from capplan.profiler.cached import CachedModel  # noqa: E402
from capplan.profiler.speculation.lighter import LARGEST, first_layers, in_int8  # noqa: E402

pytestmark = pytest.mark.torch

VOCABULARY = 60
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.3,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
LINEAR = {
    "layer_types": ["linear_attention", "full_attention"] * 2,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}
KINDS = {
    "whole": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)),
    "window": lambda: transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(
            **SHAPE, sliding_window=6, layer_types=["sliding_attention", "full_attention"] * 2
        )
    ),
    "linear": lambda: transformers.Qwen3NextForCausalLM(
        transformers.Qwen3NextConfig(**SHAPE, **LINEAR)
    ),
}


def made(kind: str) -> object:
    torch.manual_seed(0)
    return KINDS[kind]().eval()


def anew(model: object, tokens: list[int], last: int) -> np.ndarray:
    with torch.inference_mode():
        return model(input_ids=torch.tensor([tokens])).logits[0, -last:].double().numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_rejected_leaves_no_trace(kind: str) -> None:
    model = made(kind)
    cached = CachedModel(model, VOCABULARY)
    rng = np.random.default_rng(0)
    text = rng.integers(VOCABULARY, size=9).tolist()
    for _ in range(12):
        drafts = rng.integers(VOCABULARY, size=int(rng.integers(5))).tolist()
        read, last = [*text, *drafts], len(drafts) + 1
        assert cached.logits(read, last) == pytest.approx(anew(model, read, last), abs=1e-4)
        text += [*drafts[: int(rng.integers(last))], int(rng.integers(VOCABULARY))]
    other = [*text[:4], *rng.integers(VOCABULARY, size=5).tolist()]
    assert cached.logits(other, 2) == pytest.approx(anew(model, other, 2), abs=1e-4)


def test_first_layers_go_straight_to_the_head() -> None:
    model = made("whole")
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.inference_mode():
        states = model(input_ids=tokens, output_hidden_states=True).hidden_states
        wanted = model.lm_head(model.model.norm(states[2]))
        found = first_layers(model, 2)(input_ids=tokens).logits
        whole = model(input_ids=tokens).logits
    assert torch.allclose(found, wanted, atol=1e-5)
    assert not torch.allclose(found, whole, atol=1e-2)
    assert len(model.model.layers) == 4  # the target itself is as it was


@pytest.mark.parametrize("layers", [4, 9])
def test_a_part_must_be_smaller_than_the_whole(layers: int) -> None:
    with pytest.raises(InputError, match="fewer layers than the target's 4"):
        first_layers(made("whole"), layers)


def test_int8_rounds_rows_to_whole_steps() -> None:
    model = made("whole")
    lighter = in_int8(model)
    before = model.model.layers[0].self_attn.q_proj.weight
    after = lighter.model.layers[0].self_attn.q_proj.weight
    step = before.abs().amax(dim=1, keepdim=True) / LARGEST
    assert torch.allclose(after / step, (after / step).round(), atol=1e-3)
    assert (after - before).abs().max() <= step.max() / 2 * 1.001
    assert torch.equal(lighter.lm_head.weight, model.lm_head.weight)
    tokens = [3, 1, 4, 1, 5]
    apart = np.abs(anew(lighter, tokens, 5) - anew(model, tokens, 5))
    assert 0 < apart.mean() < 0.05 * np.abs(anew(model, tokens, 5)).mean()
