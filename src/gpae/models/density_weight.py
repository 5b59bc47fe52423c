"""The choice of beta: at which weight do the counterfactuals spread over the boundary as the data do?"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from gpae.numerics.boundary import boundary
from gpae.numerics.divergence import (
    kl_divergence,
    literal_divergence,
    silverman_bandwidth,
    slice_log_normaliser,
)
from gpae.numerics.tiles import in_tiles
from gpae.progress import report
from gpae.search import newton
from gpae.search.problem import Problem, Surface

__all__ = ["BETA_GRID", "PAPER_GRID", "DensityWeight", "choose_density_weight"]

PAPER_GRID = tuple(round(0.1 * i, 1) for i in range(1, 11))
"""0.1 to 1.0."""

BETA_GRID = (0.01, 0.02, 0.05, *PAPER_GRID)
"""The paper's grid and three smaller values: on some data the least divergence lies below 0.1."""

_FEWEST = 2


@dataclass(frozen=True, slots=True, eq=False)
class DensityWeight:
    """The curve KL(beta), kept for plotting, and the beta at its minimum."""

    grid: NDArray[np.float64]
    divergence: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    """Of each value, the normaliser's error included, which all betas share."""
    latents: NDArray[np.float64]
    """G x N x d: the counterfactuals' latents at each beta; NaN where the search did not reach the boundary."""
    beta: float

    @property
    def interior(self) -> bool:
        """Whether the minimum lies inside the grid (at an edge the grid, not the curve, decided)."""
        return bool(self.grid[0] < self.beta < self.grid[-1])


def choose_density_weight(
    surface: Surface,
    problem: Problem,
    training_latents: Float[Tensor, "N d"],
    generator: torch.Generator,
    *,
    grid: tuple[float, ...] = BETA_GRID,
    n_draws: int = 10,
    estimator: Literal["corrected", "literal"] = "corrected",
) -> DensityWeight | None:
    """Search the problem's rows once per beta, all betas in one batch, and measure KL(q | p) for each.

    None: at no beta did enough rows reach the boundary to speak of a distribution there.

    ``problem.beta`` is ignored. **Differs from the paper**: the boundary is where it is, not through the origin (E14);
    the Monte-Carlo estimate samples the mixture instead of averaging its draws away (E15); ``estimator="literal"``
    keeps Algorithm 3 as printed.
    """
    report("choosing beta", 0.0)
    n = len(problem.x)
    latents, reached = _searched_at_every_beta(surface, problem, grid)
    report("choosing beta", 0.8)
    signed_margin = float((problem.sign * problem.margin)[0])
    plane = boundary(surface.model.theta, surface.model.theta0, signed_margin)
    bandwidth = silverman_bandwidth(plane.project(training_latents), n)
    noise = torch.randn(n, n_draws, plane.basis.shape[1], generator=generator, dtype=problem.x.dtype)
    log_normaliser, error = slice_log_normaliser(surface.density, plane, training_latents, generator)
    values = []
    for found, at_beta in zip(reached, latents, strict=True):
        centres = plane.project(at_beta[found])
        if len(centres) < _FEWEST:
            values.append((np.nan, np.nan))
        elif estimator == "literal":
            values.append(literal_divergence(surface.density, plane, centres, noise[found], bandwidth))
        else:
            value, own_error = kl_divergence(surface.density, plane, centres, noise[found], bandwidth, log_normaliser)
            values.append((value, math.hypot(own_error, float(error))))
    report("choosing beta", 1.0)
    divergence, standard_error = np.array(values).T
    if np.isnan(divergence).all():
        return None
    latents = latents.masked_fill(~reached.unsqueeze(2), torch.nan)
    beta = float(grid[int(np.nanargmin(divergence))])
    return DensityWeight(np.array(grid), divergence, standard_error, latents.numpy(), beta)


def _searched_at_every_beta(
    surface: Surface, problem: Problem, grid: tuple[float, ...]
) -> tuple[Float[Tensor, "G N d"], Bool[Tensor, "G N"]]:
    """Latents of the relaxed counterfactuals at each beta, and which of them lie on the boundary."""
    n = len(problem.x)
    betas = torch.tensor(grid, dtype=problem.x.dtype).repeat_interleave(n)
    stacked = replace(problem.rows(torch.arange(n).repeat(len(grid))), beta=betas)
    solution = newton.solve(surface, stacked)
    (latents,) = in_tiles(lambda u: (surface.model.encode(u),), (solution.u,))
    reached = solution.violation <= 0.01 * stacked.margin
    return latents.unflatten(0, (len(grid), n)), reached.unflatten(0, (len(grid), n))
