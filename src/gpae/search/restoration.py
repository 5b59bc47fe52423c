"""The last step of both solvers: back onto the boundary plus margin, along the constraint's own gradient."""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gpae.numerics.tiles import in_tiles
from gpae.search.problem import Point, Problem, Solution, Surface, kkt_residual, linearise, merged

__all__ = ["restore"]


def restore(
    surface: Surface,
    problem: Problem,
    u: Float[Tensor, "B D"],
    iterations: Int[Tensor, " B"],
    *,
    max_steps: int = 20,
    tolerance: float = 1e-9,
) -> Solution:
    """Move each row of a widened problem onto h = 0 by Newton steps on h alone and measure what was reached.

    ``iterations`` are those a row has behind it; its steps here are added.
    """
    work = partial(_restore_tile, surface, max_steps, tolerance)
    return Solution(*in_tiles(work, (*problem.tensors(), u, iterations)))


def _restore_tile(
    surface: Surface, max_steps: int, tolerance: float, *tensors: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    problem, (u, iterations) = Problem(*tensors[:6]), tensors[6:]
    point = linearise(surface, problem, u)
    for _ in range(max_steps):
        wrong = point.h.abs() > tolerance
        if not bool(wrong.any()):
            break
        trial = linearise(surface, problem, _newton_on_h(surface, problem, point))
        better = wrong & (trial.h.abs() < point.h.abs())
        if not bool(better.any()):
            break
        point = merged(better, trial, point)
        iterations = iterations + wrong.to(iterations.dtype)
    kkt, _ = kkt_residual(surface, problem, point)
    return point.u, point.objective, point.h.abs(), kkt, iterations


def _newton_on_h(surface: Surface, problem: Problem, point: Point) -> Float[Tensor, "B D"]:
    """One step of least length onto the linearised h = 0 inside the box.

    Columns that the step would push out of the box are stopped at their bound and the rest goes on without them.
    """
    theta = problem.sign.unsqueeze(1) * surface.model.theta
    gradient = torch.bmm(theta.unsqueeze(1), point.jacobian).squeeze(1)
    u, remaining = point.u, point.h
    for _ in range(4):
        direction = gradient * _room(problem, u, gradient * remaining.unsqueeze(1))
        length = (direction.square().sum(1)).clamp(min=1e-12)
        u = (u - (remaining / length).unsqueeze(1) * direction).clamp(problem.lower, problem.upper)
        remaining = point.h + (gradient * (u - point.u)).sum(1)
    return u


def _room(problem: Problem, u: Float[Tensor, "B D"], push: Float[Tensor, "B D"]) -> Tensor:
    """Columns that can take the step: those inside the box, or, where there are none, any that can move inward."""
    inside = (u > problem.lower) & (u < problem.upper) & (push != 0)
    inward = ((push > 0) & (u > problem.lower)) | ((push < 0) & (u < problem.upper))
    return torch.where(inside.any(1, keepdim=True), inside, inward)
