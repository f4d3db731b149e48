"""A stack of layers that runs the steps of a sweep."""

import torch
from torch import Tensor

from capplan.profiler.attention_layers import GqaLayer, MlaLayer
from capplan.profiler.feed_forward import MoeLayer, feed_forward
from capplan.profiler.grid import Work
from capplan.profiler.maker import Maker, norm
from capplan.profiler.protocol import Step
from capplan.records.architecture import Architecture, Gqa, LayerKind, Mla


class Block:
    """One layer: attention and feed-forward, each behind a norm and beside a residual."""

    def __init__(self, kind: LayerKind, hidden: int, cache_tokens: int, make: Maker) -> None:
        shape = kind.attention
        assert isinstance(shape, Gqa | Mla)  # as `measurable` has checked
        self._attention: GqaLayer | MlaLayer = (
            GqaLayer(shape, hidden, cache_tokens, make)
            if isinstance(shape, Gqa)
            else MlaLayer(shape, hidden, cache_tokens, make)
        )
        self.feed_forward = feed_forward(kind.feed_forward, hidden, make)
        self._norms = (make.ones(hidden), make.ones(hidden))

    def __call__(self, hidden: Tensor, work: Work) -> Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        hidden = hidden + self._attention(norm(hidden, self._norms[0]), work)
        return hidden + self.feed_forward(norm(hidden, self._norms[1]))


class Model:
    """A model with random weights and caches full of random tokens.

    Tokens enter as independent normal vectors and layers change them little, so routers choose
    nearly independently, token by token and layer by layer: weights that make all tokens alike
    would send a whole batch to the same few experts.
    """

    def __init__(self, architecture: Architecture, cache_tokens: int, make: Maker) -> None:
        hidden = architecture.hidden_size
        self._make = make
        self._embedding = make.normal(architecture.vocabulary, hidden)
        tied = architecture.tied_embeddings
        self._head = self._embedding.T if tied else make.matrix(hidden, architecture.vocabulary)
        self._norm = make.ones(hidden)
        self._blocks = [
            [Block(kind, hidden, cache_tokens, make) for _ in range(kind.layers)]
            for kind in architecture.layer_kinds
        ]

    def step(self, work: Work) -> Step:
        """The whole pass, from token numbers to the next ones."""
        tokens = self._make.indices(len(self._embedding), work.tokens)
        wanted = _rows_with_logits(work, tokens.device)

        def run() -> Tensor:
            hidden = self._embedding[tokens]
            for blocks in self._blocks:
                hidden = _through(blocks, hidden, work)
            return (norm(hidden[wanted], self._norm) @ self._head).argmax(dim=-1)

        return run

    def kind_step(self, work: Work, kind: int) -> Step:
        """The pass through the layers of one kind alone."""
        hidden = self._make.normal(work.tokens, len(self._norm))
        return lambda: _through(self._blocks[kind], hidden, work)

    def distinct_experts(self, step: Step) -> float | None:
        """Distinct routed experts of a step, mean over sparse layers; None where there are none.

        Runs the step once more: replays of a graph leave no choice of experts to look at.
        """
        layers = [block.feed_forward for blocks in self._blocks for block in blocks]
        sparse = [layer for layer in layers if isinstance(layer, MoeLayer)]
        if not sparse:
            return None
        step()
        counts = [len(layer.chosen.unique()) for layer in sparse if layer.chosen is not None]
        return sum(counts) / len(counts)


def _through(blocks: list[Block], hidden: Tensor, work: Work) -> Tensor:
    for block in blocks:
        hidden = block(hidden, work)
    return hidden


def _rows_with_logits(work: Work, device: torch.device) -> Tensor:
    """Every token of decoding sequences, of the prompt the last. [head rows]."""
    rows = list(range(work.batch * work.query_tokens))
    if work.prefill_tokens:
        rows.append(work.tokens - 1)
    return torch.tensor(rows, device=device)
