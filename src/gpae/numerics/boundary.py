"""Coordinates on the decision boundary: lambda = lambda_b + A gamma, with A orthonormal and orthogonal to theta."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Boundary", "boundary"]


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """The hyperplane theta'lambda + theta_0 = s m in its own coordinates (E13, E14)."""

    origin: Float[Tensor, " d"]
    """lambda_b, the point of the hyperplane nearest to the origin of the latent space."""
    basis: Float[Tensor, "d e"]
    """A, with e = d - 1 columns."""
    normal: Float[Tensor, " d"]
    """theta / |theta|."""

    def project(self, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B e"]:
        """gamma = A'lambda; the origin drops out because A'theta = 0."""
        return latent @ self.basis

    def lift(self, gamma: Float[Tensor, "B e"]) -> Float[Tensor, "B d"]:
        """lambda_b + A gamma."""
        return self.origin + gamma @ self.basis.T


def boundary(theta: Float[Tensor, " d"], theta0: Float[Tensor, ""], signed_margin: float = 0.0) -> Boundary:
    """Basis by a QR factorisation of [theta, I], whose first column is theta / |theta| up to sign."""
    if len(theta) < 2:
        raise ValueError("the boundary of a one-dimensional latent space is a point: use latent_dim >= 2")
    stacked = torch.cat([theta.unsqueeze(1), torch.eye(len(theta), dtype=theta.dtype, device=theta.device)], 1)
    q, _ = torch.linalg.qr(stacked)
    return Boundary((signed_margin - theta0) * theta / theta.square().sum(), q[:, 1 : len(theta)], theta / theta.norm())
