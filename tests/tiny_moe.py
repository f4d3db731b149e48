"""A mixture of experts small enough to be trained in a test, on the prompts that are shipped."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3MoeConfig, Qwen3MoeForCausalLM

ROOT = Path(__file__).parents[1]
EXPERTS, CHOSEN, LAYERS = 16, 2, 4
STEPS = 200
END = "<end>"


def config(vocabulary: int, **other: float) -> Qwen3MoeConfig:
    shape = {
        "vocab_size": vocabulary,
        "hidden_size": 64,
        "intermediate_size": 128,
        "moe_intermediate_size": 32,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "num_experts": EXPERTS,
        "num_experts_per_tok": CHOSEN,
        "max_position_embeddings": 4096,
        "eos_token_id": 0,
        "bos_token_id": None,
        "initializer_range": 0.1,
    }
    return Qwen3MoeConfig(**(shape | other))


def texts() -> list[str]:
    lines = [
        line
        for file in sorted((ROOT / "prompts").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    return [json.loads(line)["prompt"] for line in lines]


def tokenizer() -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts(), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END)


def trained(folder: Path) -> Path:
    """Trains the model and keeps it as a checkpoint."""
    torch.manual_seed(0)
    reads = tokenizer()
    model = Qwen3MoeForCausalLM(config(len(reads)))
    stream = torch.tensor([token for text in texts() for token in (*reads(text)["input_ids"], 0)])
    optimiser = torch.optim.AdamW(model.parameters(), lr=6e-3)
    for _ in range(STEPS):
        starts = torch.randint(len(stream) - 65, (8,))
        batch = torch.stack([stream[start : start + 64] for start in starts])
        loss = model(input_ids=batch, labels=batch).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    reads.save_pretrained(folder)
    return folder


def independent(folder: Path | None = None) -> Qwen3MoeForCausalLM:
    """Random weights whose tokens choose alone: large embeddings drown what attention adds."""
    torch.manual_seed(0)
    model = Qwen3MoeForCausalLM(config(2000, hidden_size=128, num_experts=64)).eval()
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(50)
    if folder is not None:
        model.save_pretrained(folder)
    return model
