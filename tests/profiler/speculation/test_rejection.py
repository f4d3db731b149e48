"""Speculation leaves the distribution of the text alone, and counts what it says."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from capplan.profiler.speculation.drafters import Drafter, ModelDrafter, NgramDrafter
from capplan.profiler.speculation.rejection import Drafts, distribution, draw, verify
from capplan.profiler.speculation.rounds import Decoding, decode

VOCABULARY = 4
LENGTH = 3
TEXTS = 4000
RNG = np.random.default_rng(7)
TARGET = RNG.normal(0, 1.2, size=(VOCABULARY, VOCABULARY))


@dataclass
class Chain:
    """A model whose next token depends on the last one alone."""

    table: np.ndarray

    def logits(self, tokens: Sequence[int], last: int) -> np.ndarray:
        return self.table[list(tokens[-last:])]


class Stubborn:
    """Proposes one token over and over, as certain as a lookup."""

    kind = "ngram"

    def draft(self, text: Sequence[int], draft_tokens: int, rng: np.random.Generator) -> Drafts:
        del text, rng
        return Drafts((2,) * draft_tokens)


DRAFTERS = {
    "nearly the target": ModelDrafter(Chain(TARGET + RNG.normal(0, 0.2, TARGET.shape)), 1.0),
    "unlike the target": ModelDrafter(Chain(-1.5 * TARGET), 1.0),
    "the target": ModelDrafter(Chain(TARGET), 1.0),
    "sharper than the target": ModelDrafter(Chain(TARGET), 0.3),
    "the likeliest token": ModelDrafter(Chain(TARGET), 0.0),
    "stubborn": Stubborn(),
    "lookup": NgramDrafter(1, 2),
}
SAMPLED = Decoding(draft_tokens=3, temperature=1.0, max_tokens=LENGTH, ends=())


def expected() -> dict[tuple[int, ...], float]:
    """Chances of the first tokens behind token 0, by multiplication."""
    step = distribution(TARGET, 1.0)
    return {
        text: float(np.prod([step[a, b] for a, b in itertools.pairwise((0, *text))]))
        for text in itertools.product(range(VOCABULARY), repeat=LENGTH)
    }


def chi_square(seen: dict[tuple[int, ...], int]) -> float:
    """Chance of counts at least so far from the target's distribution; rare texts are pooled."""
    total = sum(seen.values())
    wanted = {text: chance * total for text, chance in expected().items()}
    common = [text for text, count in wanted.items() if count >= 5]
    counts = [seen.get(text, 0) for text in common]
    means = [wanted[text] for text in common]
    counts.append(total - sum(counts))
    means.append(total - sum(means))
    return float(stats.chisquare(counts, means).pvalue)


@pytest.mark.parametrize("name", DRAFTERS)
def test_the_text_is_distributed_as_without_drafts(name: str) -> None:
    rng = np.random.default_rng(11)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(TEXTS):
        text = decode(Chain(TARGET), DRAFTERS[name], [0, 1, 0, 3, 0], SAMPLED, rng).tokens[:LENGTH]
        seen[text] = seen.get(text, 0) + 1
    assert chi_square(seen) > 1e-3


def test_so_many_texts_tell_a_wrong_rule_from_the_right_one() -> None:
    """Taking the token behind a miss from the target, not from the excess, is found out."""
    rng = np.random.default_rng(11)
    target, offered = distribution(TARGET, 1.0), distribution(-1.5 * TARGET, 1.0)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(TEXTS):
        text = [0]
        while len(text) <= LENGTH:
            token = draw(offered[text[-1]], rng)
            kept = rng.random() * offered[text[-1], token] < target[text[-1], token]
            text.append(token if kept else draw(target[text[-1]], rng))
        seen[tuple(text[1:])] = seen.get(tuple(text[1:]), 0) + 1
    assert chi_square(seen) < 1e-6


def test_the_first_draft_is_kept_as_often_as_the_distributions_overlap() -> None:
    target = distribution(TARGET[0], 1.0)
    offered = distribution(DRAFTERS["nearly the target"].model.table[0], 1.0)
    rng = np.random.default_rng(3)
    kept = 0
    for _ in range(20_000):
        drafts = Drafts((draw(offered, rng),), offered[None])
        kept += verify(drafts, np.array([target, target]), rng).kept
    chance = np.minimum(target, offered).sum()  # Leviathan et al., theorem 3.5
    assert kept == pytest.approx(20_000 * chance, abs=4 * np.sqrt(20_000 * chance * (1 - chance)))


@given(
    st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=6),
    st.integers(1, 5),
    st.sampled_from(sorted(DRAFTERS)),
    st.integers(0, 2**32 - 1),
)
def test_greedy_text_is_plain_decoding_whatever_drafts(
    prompt: list[int], draft_tokens: int, name: str, seed: int
) -> None:
    how = Decoding(draft_tokens, temperature=0.0, max_tokens=12, ends={3})
    request = decode(Chain(TARGET), DRAFTERS[name], prompt, how, np.random.default_rng(seed))
    plain = [int(TARGET[prompt[-1]].argmax())]
    while plain[-1] not in how.ends and len(plain) < len(request.tokens):
        plain.append(int(TARGET[plain[-1]].argmax()))
    assert list(request.tokens) == plain


@given(
    st.sampled_from(sorted(DRAFTERS)),
    st.integers(1, 5),
    st.floats(0, 2),
    st.sets(st.integers(0, VOCABULARY - 1), max_size=2),
    st.integers(0, 2**32 - 1),
)
@example("lookup", 1, 5e-324, set(), 0)
def test_rounds_and_kept_drafts_add_up_to_the_text(
    name: str, draft_tokens: int, temperature: float, ends: set[int], seed: int
) -> None:
    how = Decoding(draft_tokens, temperature, max_tokens=20, ends=ends)
    request = decode(Chain(TARGET), DRAFTERS[name], [0, 1, 0], how, np.random.default_rng(seed))
    if request.counts is None:
        assert len(request.tokens) == 1
        return
    counts = request.counts
    assert len(request.tokens) == 1 + counts.rounds + sum(counts.accepted)
    assert list(counts.accepted) == sorted(counts.accepted, reverse=True)
    assert max(counts.accepted) <= counts.drafted_rounds <= counts.rounds
    assert not set(request.tokens[:-1]) & ends


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ([5, 6, 7, 8, 1, 5, 6], (7, 8, 1)),  # of two tokens
        ([5, 6, 7, 9, 6, 8, 1, 5, 6], (7, 9, 6)),  # the longer match before the later one
        ([6, 7, 6, 8, 6], (7, 6, 8)),  # the first of equal matches
        ([1, 2, 1], (2, 1)),  # no more than there is
        ([1, 2, 3, 4], ()),
        ([1], ()),
    ],
)
def test_lookup_proposes_what_followed(text: list[int], proposed: tuple[int, ...]) -> None:
    drafter: Drafter = NgramDrafter(1, 2)
    found = drafter.draft(text, 3, np.random.default_rng(0))
    assert found.tokens == proposed
    assert found.chances is None


def test_lookup_no_shorter_than_asked() -> None:
    found = NgramDrafter(2, 3).draft([6, 7, 6], 3, np.random.default_rng(0))
    assert found.tokens == ()


def test_a_token_without_weight_is_never_drawn() -> None:
    rng = np.random.default_rng(0)
    assert {draw(np.array([0.0, 1.0, 0.0, 2.0, 0.0]), rng) for _ in range(500)} == {1, 3}
