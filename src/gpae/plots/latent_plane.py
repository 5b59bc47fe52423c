"""The plane in which latents are drawn: across the decision boundary and along it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.errors import InputError
from gpae.numerics.autoencoder import AutoEncoder

__all__ = ["LatentPlane", "latent_plane"]

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LatentPlane:
    """A plane in the latent space; x is the signed distance from the decision boundary, which is x = 0."""

    origin: Points
    """A point on the boundary; the plane passes through it and through the mean of the latents."""
    axes: Points
    """2 x d, orthonormal: theta/|theta| and the leading principal direction of the latents across it."""

    def project(self, latents: Points) -> Points:
        """Return N x 2 coordinates of N x d latents; what sticks out of the plane is dropped."""
        return np.asarray((latents - self.origin) @ self.axes.T)

    def lift(self, points: Points) -> Points:
        """Return the N x d latents of N x 2 points of the plane."""
        return np.asarray(self.origin + points @ self.axes)

    def spread_along_boundary(self, latents: Points) -> float:
        """Return the root mean square distance of the latents from their mean, all directions but theta's."""
        centred = latents - latents.mean(0)
        along = centred - np.outer(centred @ self.axes[0], self.axes[0])
        return float(np.sqrt(np.square(along).sum(1).mean()))


def latent_plane(latents: Points, model: AutoEncoder) -> LatentPlane:
    """Return the plane through the mean of the latents along theta and what varies most across it."""
    if latents.shape[1] < 2:
        raise InputError("a latent plane needs latent_dim of at least 2; this model has 1")
    theta = model.theta.detach().cpu().double().numpy()
    length = float(np.linalg.norm(theta))
    across = theta / length
    mean = latents.mean(0)
    centred = latents - mean
    rest = centred - np.outer(centred @ across, across)
    _, directions = np.linalg.eigh(rest.T @ rest + _never_along(across, rest))
    distance = (mean @ theta + float(model.theta0)) / length
    return LatentPlane(mean - distance * across, np.stack([across, _signed(directions[:, -1])]))


def _never_along(across: Points, rest: Points) -> Points:
    """Return a term that gives theta's own direction the lowest rank, even where the rest does not vary."""
    return np.asarray(-(1.0 + np.square(rest).sum()) * np.outer(across, across))


def _signed(direction: Points) -> Points:
    """Return the direction with its largest entry positive: eigenvectors come with either sign."""
    return np.asarray(direction * np.sign(direction[np.argmax(np.abs(direction))]))
