"""The convex parts of the model, solved directly: logistic and ridge regression on fixed features."""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["logistic", "ridge"]


def logistic(
    features: Float[Tensor, "N S"],
    y: Float[Tensor, " N"],
    weight: Float[Tensor, " N"],
    penalty: float,
    n_steps: int = 8,
) -> tuple[Float[Tensor, " S"], Float[Tensor, ""]]:
    """Minimise mean(weight * cross-entropy) + penalty/2 |v|^2 by Newton steps; return v and the bias.

    From zero, eight steps are at the optimum to float32 for a penalised problem; the bias is not penalised.
    """
    n, width = features.shape
    design = torch.cat([features, features.new_ones(n, 1)], 1)
    penalties = features.new_full((width + 1,), penalty)
    penalties[-1] = 1e-6
    v = features.new_zeros(width + 1)
    for _ in range(n_steps):
        p = torch.sigmoid(design @ v)
        gradient = design.T @ (weight * (p - y)) / n + penalties * v
        curvature = (weight * p * (1 - p) / n).clamp(min=1e-12)
        hessian = (design * curvature.unsqueeze(1)).T @ design + torch.diag(penalties)
        v = v - torch.linalg.solve(hessian, gradient)
    return v[:-1], v[-1]


def ridge(features: Float[Tensor, "N S"], targets: Float[Tensor, "N D"], penalty: float) -> Float[Tensor, "S D"]:
    """argmin |features W - targets|^2 + penalty |W|^2."""
    gram = features.T @ features
    gram.diagonal().add_(penalty)
    return torch.linalg.solve(gram, features.T @ targets)
