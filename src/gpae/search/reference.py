"""The paper's solver, written plainly: descent in delta, ascent in eta, alternating (E10, E11).

    delta <- clip(delta - step_delta * dL/dδ)        eta <- eta + step_eta * h

It is slow and obvious on purpose: the yardstick for :mod:`gpae.search.newton`. The paper gives no step sizes. Those
that work depend on the row: the default takes ``step_delta`` as the share of the largest stable step, one over a
bound on the Lagrangian's curvature, and sets the ascent to critical damping.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from gpae.numerics.density import curvature
from gpae.numerics.tiles import in_tiles
from gpae.search.problem import Point, Problem, Solution, Surface, gradients, linearise, widened
from gpae.search.restoration import restore
from gpae.search.units import solved_in_units

__all__ = ["solve"]


def solve(
    surface: Surface,
    problem: Problem,
    *,
    start: Float[Tensor, "B D"] | None = None,
    n_iterations: int = 5000,
    step_delta: float = 0.5,
    step_eta: float = 0.25,
) -> Solution:
    """Run the alternating updates for a fixed number of iterations, then restore onto the boundary."""
    if surface.units is not None:
        asked = {"n_iterations": n_iterations, "step_delta": step_delta, "step_eta": step_eta}
        return solved_in_units(solve, surface, problem, start, **asked)
    n_columns = problem.x.shape[1]
    surface, problem = widened(surface, problem)
    u = problem.x if start is None else pad(start, (0, problem.x.shape[1] - n_columns))
    u = u.clamp(problem.lower, problem.upper)
    work = partial(_alternate, surface, n_iterations, step_delta, step_eta)
    (u,) = in_tiles(work, (*problem.tensors(), u))
    iterations = torch.full(problem.beta.shape, n_iterations, dtype=torch.int64, device=u.device)
    return restore(surface, problem, u, iterations).cropped(n_columns)


def _alternate(
    surface: Surface, n_iterations: int, step_delta: float, step_eta: float, *tensors: Tensor
) -> tuple[Tensor]:
    problem, u = Problem(*tensors[:6]), tensors[6]
    eta = torch.zeros_like(problem.beta)
    bound = torch.ones_like(eta)
    for iteration in range(n_iterations):
        point = linearise(surface, problem, u)
        grad_f, grad_h = gradients(surface, problem, point)
        if iteration % 10 == 0:
            bound = _curvature_bound(surface, problem, point)
        gradient = grad_f + eta.unsqueeze(1) * grad_h
        step = step_delta / bound
        u = (u - step.unsqueeze(1) * gradient).clamp(problem.lower, problem.upper)
        movable = (problem.upper > problem.lower).to(u.dtype)
        steep = (grad_h.square() * movable).sum(1).clamp(min=1e-6)
        eta = eta + step_eta / (bound * steep) * point.h
    return (u,)


def _curvature_bound(surface: Surface, problem: Problem, point: Point) -> Float[Tensor, " B"]:
    """1 + beta |J|^2 |Hessian of log p|, what limits the descent's step."""
    movable = (problem.upper > problem.lower).to(point.u.dtype).unsqueeze(1)
    spread = (point.jacobian * movable).square().sum((1, 2))
    sharpness = torch.linalg.matrix_norm(curvature(surface.density, point.latent))
    return 1 + problem.beta * spread * sharpness
