"""A latent space with everything known: a Gaussian density and a linear boundary."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gpae.models.density_weight import DensityWeight
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt
from gpae.numerics.fourier import FourierMap


@dataclass(frozen=True)
class World:
    latents: NDArray[np.float64]
    favourable: NDArray[np.bool_]
    model: AutoEncoder
    tilt: Tilt


def build_world(d: int, n: int = 200) -> World:
    latents = np.random.default_rng(d).normal(size=(n, d)) * np.linspace(2.0, 0.5, d) + 0.3
    theta, theta0 = torch.linspace(1.0, 0.4, d, dtype=torch.float64), torch.tensor(-0.5, dtype=torch.float64)
    fmap = FourierMap(torch.zeros(3, d, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))
    zeros = torch.zeros(3, d, dtype=torch.float64)
    model = AutoEncoder(fmap, zeros, fmap, zeros, theta, theta0)
    covariance = torch.as_tensor(np.cov(latents.T).reshape(d, d))
    factor, nothing = torch.linalg.cholesky(covariance), torch.tensor(0.0, dtype=torch.float64)
    mean = torch.as_tensor(latents.mean(0))
    tilt = Tilt(fmap, fmap.phases, mean, factor, torch.linalg.inv(covariance), nothing, nothing)
    return World(latents, latents @ theta.numpy() + float(theta0) > 0, model, tilt)


def build_choice(world: World, divergence: list[float]) -> DensityWeight:
    grid = np.round(np.linspace(0.1, 1.0, len(divergence)), 3)
    refused = world.latents[~world.favourable]
    latents = np.stack([refused * (1.0 - 0.8 * beta) for beta in grid])
    latents[0, :2] = np.nan
    values = np.array(divergence)
    return DensityWeight(grid, values, np.full(len(grid), 0.01), latents, float(grid[np.nanargmin(values)]))


def written(figure: Figure) -> str:
    """Every text of a figure, in one string."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


@pytest.fixture(scope="session")
def world() -> Callable[[int], World]:
    return build_world


@pytest.fixture(scope="session")
def choose() -> Callable[[World, list[float]], DensityWeight]:
    return build_choice


@pytest.fixture(scope="session")
def words() -> Callable[[Figure], str]:
    return written
