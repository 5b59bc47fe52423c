"""A small surface with bends and bounds to search on."""

import pytest
import torch

from gpae.numerics.autoencoder import AutoEncoder, encode, logit
from gpae.numerics.density import fit_tilt
from gpae.numerics.fourier import draw_map
from gpae.search.problem import Problem, Surface


@pytest.fixture(scope="session")
def surface() -> Surface:
    g = torch.Generator().manual_seed(0)
    encoder = draw_map(60, 5, 1.2, g)
    model = AutoEncoder(
        encoder,
        2 * torch.randn(60, 3, generator=g, dtype=torch.float64),
        draw_map(60, 3, 1.0, g),
        torch.randn(60, 5, generator=g, dtype=torch.float64),
        torch.tensor([1.0, -0.7, 0.4], dtype=torch.float64),
        torch.tensor(0.1, dtype=torch.float64),
    )
    rows = torch.rand(800, 5, generator=g, dtype=torch.float64)
    return Surface(model, fit_tilt(encode(model, rows), g, n_features=80, n_draws=8000, n_fresh=20_000))


@pytest.fixture(scope="session")
def problem(surface: Surface) -> Problem:
    """Rows on the negative side, the last column immutable."""
    x = torch.rand(400, 5, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    x = x[logit(surface.model, encode(surface.model, x)) < -0.05][:120]
    lower, upper = torch.zeros_like(x), torch.ones_like(x)
    lower[:, 4] = upper[:, 4] = x[:, 4]
    one = torch.ones(len(x), dtype=torch.float64)
    return Problem(x, lower, upper, 0.05 * one, one, 0.02 * one)
