"""Coordinates in which overlapping features count alike.

Fourier features of tabular rows overlap: the eigenvalues of A = mean phi phi' fall over eight decades, and a gradient
step that suits the largest hardly moves along the others. With W = PV and P = (A + lambda I)^(-1/2), a step on V has
the right length along every direction whose eigenvalue is above lambda.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Whitening", "whitening"]

_NEGLIGIBLE = 0.5
"""Directions whose eigenvalue is below this share of the damping are left as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """P = (A + lambda I)^(-1/2), kept as what it does along A's leading eigenvectors: P is symmetric."""

    directions: Float[Tensor, "k S"]
    shrinkage: Float[Tensor, " k"]
    """sqrt(lambda / (e + lambda)) for each eigenvalue e."""
    damping: float

    def __call__(self, rows: Float[Tensor, "c S"]) -> Float[Tensor, "c S"]:
        """Each row times P: weights from coordinates, or the gradient by coordinates from the one by weights."""
        return self._scaled(rows, self.shrinkage - 1) / math.sqrt(self.damping)

    def coordinates(self, weights: Float[Tensor, "c S"]) -> Float[Tensor, "c S"]:
        """Each row times P^-1."""
        return self._scaled(weights, 1 / self.shrinkage - 1) * math.sqrt(self.damping)

    def _scaled(self, rows: Float[Tensor, "c S"], excess: Float[Tensor, " k"]) -> Float[Tensor, "c S"]:
        """Each row times I + U diag(excess) U'."""
        return torch.addmm(rows, (rows @ self.directions.T) * excess, self.directions)


def whitening(features: Float[Tensor, "N S"], damping: float) -> Whitening:
    """The whitening of a sample of features."""
    eigenvalues, vectors = torch.linalg.eigh((features.T @ features / len(features)).double())
    kept = eigenvalues > _NEGLIGIBLE * damping
    shrinkage = (damping / (eigenvalues[kept] + damping)).sqrt()
    return Whitening(vectors[:, kept].T.to(features.dtype).contiguous(), shrinkage.to(features.dtype), damping)
