"""Feed-forward layers: gated matrices, and experts of which only the chosen ones are computed."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from capplan.profiler.maker import Maker
from capplan.records.architecture import Dense, FeedForward, Moe


def feed_forward(shape: FeedForward, hidden: int, make: Maker) -> "DenseLayer | MoeLayer":
    """Makes the layer for a shape."""
    if isinstance(shape, Dense):
        return DenseLayer(shape.width, hidden, make)
    assert isinstance(shape, Moe)  # as `measurable` has checked
    return MoeLayer(shape, hidden, make)


def gate(both: Tensor) -> Tensor:
    """[..., 2 * width] -> [..., width]: SiLU of the first half times the second."""
    gates, ups = both.chunk(2, dim=-1)
    return F.silu(gates) * ups


class DenseLayer:
    """Gate, up and down matrices."""

    def __init__(self, width: int, hidden: int, make: Maker) -> None:
        self._gate_up = make.matrix(hidden, 2 * width)
        self._down = make.matrix(width, hidden)

    def __call__(self, hidden: Tensor) -> Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        return gate(hidden @ self._gate_up) @ self._down


class MoeLayer:
    """A router, routed experts and shared ones.

    `chosen` holds the experts of the last call. [tokens, experts per token]
    """

    def __init__(self, shape: Moe, hidden: int, make: Maker) -> None:
        self._shape = shape
        self._router = make.matrix(hidden, shape.experts)
        self._bias = 0.01 * make.normal(shape.experts) if shape.router_bias else None
        self._gate_up = make.matrix(shape.experts, hidden, 2 * shape.expert_width)
        self._down = make.matrix(shape.experts, shape.expert_width, hidden)
        self._shared = DenseLayer(shape.shared_width, hidden, make) if shape.shared_width else None
        self.chosen: Tensor | None = None

    def __call__(self, hidden: Tensor) -> Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        weights, self.chosen = self.route(hidden)
        by_expert = self.chosen.flatten().argsort(stable=True)
        rows = by_expert // self._shape.experts_per_token
        share = weights.flatten()[by_expert, None]
        grouped = hidden.is_cuda and hidden.dtype == torch.bfloat16
        mix = self._grouped if grouped else self._looped
        out = torch.zeros_like(hidden)
        out.index_add_(0, rows, mix(hidden[rows], self._tokens_per_expert()) * share)
        return out if self._shared is None else out + self._shared(hidden)

    def route(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and experts of every token. [tokens, experts per token] each.

        Softmax over all experts; with a bias, sigmoid scores that the bias corrects for choosing
        only (DeepSeek-V3, arXiv 2412.19437, equations 13 to 16, without groups of experts).
        """
        logits = (hidden @ self._router).float()
        scores = logits.softmax(dim=-1) if self._bias is None else logits.sigmoid()
        ranked = scores if self._bias is None else scores + self._bias
        chosen = ranked.topk(self._shape.experts_per_token, dim=-1).indices
        weights = scores.gather(1, chosen)
        return (weights / weights.sum(dim=-1, keepdim=True)).to(hidden.dtype), chosen

    def _tokens_per_expert(self) -> Tensor:
        """[experts]; counted without asking the device for its largest entry."""
        assert self.chosen is not None
        flat = self.chosen.flatten()
        zeros = torch.zeros(self._shape.experts, dtype=torch.int32, device=flat.device)
        return zeros.index_add_(0, flat, torch.ones_like(flat, dtype=torch.int32))

    def _looped(self, rows: Tensor, counts: Tensor) -> Tensor:
        """Rows sorted by expert -> what their experts make of them; untouched experts are not read.

        [tokens * experts per token, hidden] both.
        """
        parts = rows.split(counts.tolist())
        touched = [(expert, part) for expert, part in enumerate(parts) if len(part)]
        return torch.cat(
            [gate(part @ self._gate_up[expert]) @ self._down[expert] for expert, part in touched]
        )

    def _grouped(self, rows: Tensor, counts: Tensor) -> Tensor:
        """The same as one kernel a matrix, which a CUDA graph can hold."""
        ends = counts.cumsum(0, dtype=torch.int32)
        inner = gate(F.grouped_mm(rows, self._gate_up, offs=ends))
        return F.grouped_mm(inner, self._down, offs=ends)
