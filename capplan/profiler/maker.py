"""What all layers are made of: random tensors, and the norm."""

import math
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

EPSILON: Final = 1e-6


class Maker:
    """Makes random tensors of one type on one device."""

    def __init__(self, device: str, dtype: torch.dtype, seed: int) -> None:
        self.device = device
        self.dtype = dtype
        self._generator = torch.Generator(device).manual_seed(seed)

    def matrix(self, *shape: int) -> Tensor:
        """Weights that keep the size of what passes: uniform, variance 1/in. [*shape]."""
        bound = math.sqrt(3 / shape[-2])
        return self._empty(shape).uniform_(-bound, bound, generator=self._generator)

    def normal(self, *shape: int) -> Tensor:
        """Independent normal numbers of unit variance. [*shape]."""
        return self._empty(shape).normal_(generator=self._generator)

    def indices(self, below: int, count: int) -> Tensor:
        """Random whole numbers. [count]."""
        return torch.randint(
            below, (count,), device=self.device, generator=self._generator, dtype=torch.int64
        )

    def ones(self, size: int) -> Tensor:
        """[size]."""
        return torch.ones(size, device=self.device, dtype=self.dtype)

    def _empty(self, shape: tuple[int, ...]) -> Tensor:
        return torch.empty(shape, device=self.device, dtype=self.dtype)


def norm(hidden: Tensor, weight: Tensor) -> Tensor:
    """Root-mean-square norm over the last axis."""
    return F.rms_norm(hidden, weight.shape, weight, EPSILON)
