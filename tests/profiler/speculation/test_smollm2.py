"""A real model with drafters good and bad: figures as seen before, and text that stays its own."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from capplan.files.prompts import read_prompts  # noqa: E402
from capplan.profiler.cached import CachedModel  # noqa: E402
from capplan.profiler.checkpoint import Checkpoint, load  # noqa: E402
from capplan.profiler.real_text import looks_random  # noqa: E402
from capplan.profiler.speculation.drafters import ModelDrafter, NgramDrafter  # noqa: E402
from capplan.profiler.speculation.lighter import first_layers, in_int8  # noqa: E402
from capplan.profiler.speculation.rounds import Decoding, Request, decode  # noqa: E402
from capplan.records.prompt import Message  # noqa: E402

pytestmark = pytest.mark.torch

CHAT = Path(__file__).parents[3] / "prompts" / "chat.jsonl"
PROMPTS = 2
TOKENS = 20
TIE = 0.02
"""Logits nearer than this may change places with the number of rows of a product in fp32."""


@pytest.fixture(scope="module")
def target(smollm2: Path) -> Checkpoint:
    return load("TARGET", smollm2)


@pytest.fixture(scope="module")
def texts(target: Checkpoint) -> list[list[int]]:
    prompts = read_prompts(CHAT)[:PROMPTS]
    return [target.encode(prompt.conversation) for prompt in prompts]


def requests(target: Checkpoint, drafter: object, texts: list[list[int]]) -> list[Request]:
    how = Decoding(4, temperature=0.0, max_tokens=TOKENS, ends=target.ends)
    verifier = CachedModel(target.model, target.vocabulary)
    rng = np.random.default_rng(0)
    return [decode(verifier, drafter, text, how, rng) for text in texts]


def tokens_a_round(found: list[Request]) -> float:
    return sum(len(r.tokens) - 1 for r in found) / sum(r.counts.rounds for r in found)


def test_drafters_from_bad_to_good_come_out_as_seen_before(
    target: Checkpoint, texts: list[list[int]]
) -> None:
    """Seen on other prompts with another program: 1.05, 1.23, 1.80 and 3.38 tokens a round."""
    ranges = {
        "10 layers": (first_layers(target.model, 10), 1.0, 1.15),
        "20 layers": (first_layers(target.model, 20), 1.0, 1.5),
        "25 layers": (first_layers(target.model, 25), 1.3, 2.3),
        "int8": (in_int8(target.model), 2.6, 5.0),
    }
    found = {}
    for name, (model, low, high) in ranges.items():
        drafter = ModelDrafter(CachedModel(model, target.vocabulary), 0.0)
        found[name] = tokens_a_round(requests(target, drafter, texts))
        assert low <= found[name] <= high, name
    assert sorted(found, key=found.__getitem__) == list(ranges)


def test_greedy_text_is_the_targets_own_where_logits_do_not_tie(
    target: Checkpoint, texts: list[list[int]]
) -> None:
    wide = Checkpoint(target.name, target.model.float(), target.tokenizer)
    try:
        shallow = CachedModel(first_layers(wide.model, 25), wide.vocabulary)
        plain, gaps = decoded_plainly(wide, texts[0], TOKENS)
        for drafter in (NgramDrafter(1, 3), ModelDrafter(shallow, 0.0)):
            (request,) = requests(wide, drafter, texts[:1])
            pairs = enumerate(zip(plain, request.tokens, strict=False))
            parted = [place for place, (mine, theirs) in pairs if mine != theirs]
            assert not parted or gaps[parted[0]] < TIE
            assert len(request.tokens) == 1 + request.counts.rounds + sum(request.counts.accepted)
    finally:
        target.model.bfloat16()


def decoded_plainly(
    target: Checkpoint, prompt: list[int], tokens: int
) -> tuple[list[int], list[float]]:
    """Tokens one by one, and how far each was ahead of the next best."""
    model = CachedModel(target.model, target.vocabulary)
    said: list[int] = []
    gaps = []
    for _ in range(tokens):
        logits = model.logits([*prompt, *said], last=1)[0]
        second, first = np.partition(logits, -2)[-2:]
        gaps.append(first - second)
        said.append(int(logits.argmax()))
    return said, gaps


def test_prompts_pass_through_the_template(target: Checkpoint) -> None:
    asked = [Message(role="user", content="Why is the sky blue?")]
    text = target.tokenizer.decode(target.encode(asked))
    assert target.templated
    assert text.endswith("<|im_start|>assistant\n")
    assert "Why is the sky blue?" in text
    assert target.tokenizer.decode(target.plain(asked)) == "Why is the sky blue?"
    assert [target.tokenizer.decode([end]) for end in target.ends] == ["<|im_end|>"]


@pytest.mark.parametrize("read_back", [False, True])
def test_random_tokens_are_told_from_text(target: Checkpoint, read_back: bool) -> None:
    tokens = np.random.default_rng(0).integers(100, target.vocabulary, size=60).tolist()
    if read_back:
        tokens = target.tokenizer(target.tokenizer.decode(tokens))["input_ids"]
    assert looks_random(target.model, tokens, target.vocabulary)


@pytest.mark.parametrize(
    "text",
    [
        "Schreibe eine kurze Nachricht an meine Vermieterin: Die Heizung ist seit Montag kalt.",
        "Напиши короткое письмо с отказом от встречи во вторник.",
        '{"id": 8123, "qty": 4, "sku": "XJ-99812-B", "ship": "2025-03-11"}',
        "ACGTTGCAACGTAGGCTAACGTAGCATCGATCGATTACGCGTA",
        "for i in range(10):\n    total += values[i] * weights[i % 3]\n",
    ],
)
def test_text_is_not_taken_for_random(target: Checkpoint, text: str) -> None:
    tokens = target.plain([Message(role="user", content=text)])
    assert not looks_random(target.model, tokens, target.vocabulary)
