"""Gaussians with independent entries, one a row: what the encoders of the variational auto-encoders return."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Gaussian"]


@dataclass(frozen=True, slots=True, eq=False)
class Gaussian:
    """N(mean, diag std^2), row by row."""

    mean: Float[Tensor, "B k"]
    std: Float[Tensor, "B k"]

    def draw(self, generator: torch.Generator) -> Float[Tensor, "B k"]:
        """One draw a row, which gradients pass through."""
        return self.mean + self.std * torch.randn(self.mean.shape, generator=generator)

    def divergence(self, other: "Gaussian | None" = None) -> Float[Tensor, " B"]:
        """KL(self | other) of each row; None: from the standard normal."""
        mean, std = (other.mean, other.std) if other is not None else (torch.zeros(()), torch.ones(()))
        ratio = (self.std / std).square()
        return 0.5 * (ratio + ((self.mean - mean) / std).square() - 1 - ratio.log()).sum(1)
