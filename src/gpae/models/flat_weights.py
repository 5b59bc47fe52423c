"""The weights of a small network as one vector, and Adam on it.

A step of torch's own Adam takes longer than the gradient of some of these networks: it looks at every weight by
itself, and so does clipping. On one vector both are a few operations.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.numerics.adam import Adam

__all__ = ["FlatWeights"]

_ALIGNED = 16
"""Entries that every part begins at a multiple of: 64 bytes, as where it has memory of its own; with other boundaries
the products of a network would have other last bits than those of its copy in a file."""


class FlatWeights:
    """Weights that from now on lie side by side, their gradients too, and how they are moved.

    Parameters
    ----------
    parts
        Parameters; each becomes a view of the vector.
    rate
        Of Adam.
    decay
        Share of each weight that is added to its gradient.
    clip_norm
        The length that the gradient has at most; None: any.
    """

    def __init__(
        self, parts: Sequence[Tensor], rate: float, *, decay: float = 0.0, clip_norm: float | None = None
    ) -> None:
        ends = [0]
        for part in parts:
            ends.append(ends[-1] + part.numel() + -part.numel() % _ALIGNED)
        self.values: Float[Tensor, " n"] = torch.zeros(ends[-1], dtype=parts[0].dtype)
        self.gradient = torch.zeros_like(self.values)
        self.decay, self.clip_norm = decay, clip_norm
        self._adam = Adam([self.values], [rate])
        for part, start in zip(parts, ends[:-1], strict=True):
            here = slice(start, start + part.numel())
            self.values[here] = part.detach().flatten()
            part.data, part.grad = self.values[here].view_as(part), self.gradient[here].view_as(part)

    @torch.no_grad()
    def step(self) -> None:
        """Move along what has been added to the gradients since the last step."""
        if self.clip_norm is not None:
            self.gradient.mul_((self.clip_norm / (self.gradient.norm() + 1e-6)).clamp(max=1.0))
        if self.decay:
            self.gradient.add_(self.values, alpha=self.decay)
        self._adam.step([self.gradient])
        self.gradient.zero_()
