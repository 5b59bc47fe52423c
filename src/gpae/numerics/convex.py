"""The convex parts of the model, solved directly: logistic and ridge regression on fixed features."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["logistic", "ridge"]

_INEXACT = 0.1
"""How far a Newton system is solved: by so much its residual shrinks. More would be lost on a step that is not the
last."""
_MAX_ITERATIONS = 30


def logistic(
    features: Float[Tensor, "N S"],
    y: Float[Tensor, " N"],
    weight: Float[Tensor, " N"],
    penalty: float,
    n_steps: int = 12,
) -> tuple[Float[Tensor, " S"], Float[Tensor, ""]]:
    """Minimise mean(weight * cross-entropy) + penalty/2 |v|^2 by Newton steps; return v and the bias.

    Only the first Hessian is formed and factorised, which is what costs; the others differ from it by the rows'
    curvatures alone, so that conjugate gradients need a handful of products with it as preconditioner. The bias is not
    penalised.
    """
    n, width = features.shape
    design = torch.cat([features, features.new_ones(n, 1)], 1)
    penalties = features.new_full((width + 1,), penalty)
    penalties[-1] = 1e-6
    v, factor = features.new_zeros(width + 1), _first_factor(design, weight, penalties)
    for _ in range(n_steps):
        p = torch.sigmoid(design @ v)
        gradient = design.T @ (weight * (p - y)) / n + penalties * v
        curvature = (weight * p * (1 - p) / n).clamp(min=1e-12)
        step, decrement = _conjugate_gradients(
            lambda u, c=curvature: design.T @ (c * (design @ u)) + penalties * u,  # type: ignore[misc]
            gradient,
            lambda r: torch.cholesky_solve(r.unsqueeze(1), factor).squeeze(1),
        )
        v = v - step
        if not decrement > torch.finfo(v.dtype).eps:
            break
    return v[:-1], v[-1]


def _first_factor(
    design: Float[Tensor, "N S"], weight: Float[Tensor, " N"], penalties: Float[Tensor, " S"]
) -> Float[Tensor, "S S"]:
    """Cholesky factor of the Hessian at zero."""
    hessian = (design * (weight / (4 * len(design))).unsqueeze(1)).T @ design
    rounding = torch.finfo(hessian.dtype).eps * hessian.diagonal().max()
    hessian.diagonal().add_(penalties + 10 * rounding)
    return torch.linalg.cholesky(hessian.double()).to(hessian.dtype)


def _conjugate_gradients(
    matrix: Callable[[Tensor], Tensor], side: Float[Tensor, " S"], preconditioner: Callable[[Tensor], Tensor]
) -> tuple[Float[Tensor, " S"], float]:
    """Solve roughly; return the solution and the side's squared length in the preconditioner's metric."""
    solution, residual = torch.zeros_like(side), side
    direction = near = preconditioner(residual)
    first = length = float(residual @ near)
    for _ in range(_MAX_ITERATIONS if first > 0 else 0):
        image = matrix(direction)
        share = length / (direction @ image)
        solution, residual = solution + share * direction, residual - share * image
        near = preconditioner(residual)
        shorter = float(residual @ near)
        if not shorter > _INEXACT**2 * first:
            break
        direction, length = near + (shorter / length) * direction, shorter
    return solution, first


def ridge(features: Float[Tensor, "N S"], targets: Float[Tensor, "N D"], penalty: float) -> Float[Tensor, "S D"]:
    """argmin |features W - targets|^2 + penalty |W|^2."""
    gram = features.T @ features
    gram.diagonal().add_(penalty)
    return torch.linalg.solve(gram, features.T @ targets)
