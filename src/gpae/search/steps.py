"""The quadratic problem of one Newton step, in two forms.

Both minimise a model of the objective under the linearised constraint and inside the box, with a damping mu:

* :func:`latent_step` keeps the curvature of log p only. The solution lies in the row space of the Jacobian, so all
  algebra is d x d: u+ = clip((x + m u + J'v) / (1 + m)) with v = beta (g - N a) - eta s theta, a = J (u+ - u). Of the
  curvature of the encoder itself it knows a number, the bend: what the last step met of it along its way
  (:func:`next_bend`, after Barzilai and Borwein), taken for all directions alike; m = mu + bend.
* :func:`full_step` has all of the encoder's curvature, at the price of D x D algebra. It converges where the boundary
  bends too sharply for the first.

The columns held at a bound are found by a few rounds of active-set iteration on the same linearisation.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.numerics.aligned import eigh, products, solve
from gpae.numerics.density import curvature
from gpae.search.problem import Point, Problem, Surface, gradients, objective

__all__ = ["Step", "full_step", "latent_step", "next_bend"]

_ROUNDS = 12
_FLAT = 0.1
"""Least curvature of the full step's model; negative curvature counts this share of itself, to leave a saddle fast."""
_LATENT_DAMPING = 4.0
"""The damping acts on the step in feature space and, this many times the envelope's precision, on the latent step: the
model of log p is good over a stretch of latent space, that of the encoder over one of feature space."""

_LEAST_BEND, _MOST_BEND = -0.5, 4.0
"""Beside the way's own curvature, which is 1: the model stays convex, and one step does not stop the next."""
_TELLING = 1e-6
"""The square of the least step that tells of a bend: gradients at the ends of a shorter one differ by their noise."""

Step: TypeAlias = Callable[
    [Surface, Problem, Point, Float[Tensor, " B"], Float[Tensor, " B"], Float[Tensor, " B"]],
    tuple[Float[Tensor, "B D"], Float[Tensor, " B"], Float[Tensor, " B"]],
]
"""(surface, problem, point, damping, bend, last eta) -> (new point, eta, change of the model objective)."""


def latent_step(
    surface: Surface,
    problem: Problem,
    point: Point,
    damping: Float[Tensor, " B"],
    bend: Float[Tensor, " B"],
    eta: Float[Tensor, " B"],
) -> tuple[Float[Tensor, "B D"], Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Gauss-Newton step; the last multiplier serves only to bound the next."""
    J, g, h = point.jacobian, point.score, point.h
    N = _concave_part(surface, point.latent)
    damped = N + _LATENT_DAMPING * damping.view(-1, 1, 1) * surface.density.precision
    theta = problem.sign.unsqueeze(1) * surface.model.theta
    beta, mu = problem.beta.unsqueeze(1), (damping + bend).unsqueeze(1)
    anchor = (problem.x + mu * point.u) / (1 + mu)
    eye = torch.eye(J.shape[1], dtype=J.dtype, device=J.device)
    cap = _multiplier_cap(problem, point, _times(J.mT, theta), eta)
    # who is pinned elsewhere than at the own value is there from the first round on
    free, new = problem.upper > problem.lower, problem.x.clamp(problem.lower, problem.upper)
    settled = torch.zeros_like(eta, dtype=torch.bool)
    for _ in range(_ROUNDS):
        K = products(J * free.unsqueeze(1), J.mT) / (1 + mu).unsqueeze(2)
        # a = J (u+ - u) = K v + offset: the held columns sit at their bounds, the free ones at the anchor
        offset = _times(J, torch.where(free, anchor, new) - point.u)
        sides = torch.stack([beta * _times(K, g) + offset, _times(K, theta)], 2)
        solved = solve(eye + beta.unsqueeze(2) * products(K, damped), sides)
        steepness = (theta * solved[:, :, 1]).sum(1).clamp(min=1e-12)
        multiplier = (((theta * solved[:, :, 0]).sum(1) + h) / steepness).clamp(-cap, cap)
        a = solved[:, :, 0] - multiplier.unsqueeze(1) * solved[:, :, 1]
        v = beta * (g - _times(damped, a)) - multiplier.unsqueeze(1) * theta
        wish = anchor + _times(J.mT, v) / (1 + mu)
        inside = (wish > problem.lower) & (wish < problem.upper)
        # a row that has settled is left as it is, however long its neighbours in the tile go on
        new = torch.where(settled.unsqueeze(1), new, wish.clamp(problem.lower, problem.upper))
        eta = torch.where(settled, eta, multiplier)
        settled = settled | (inside == free).all(1)
        if bool(settled.all()):
            break
        free = torch.where(settled.unsqueeze(1), free, inside)
    by = new - point.u
    a = _times(J, by)
    distance = 0.5 * ((new - problem.x).square().sum(1) - (point.u - problem.x).square().sum(1))
    bent = 0.5 * bend * by.square().sum(1)
    return new, eta, distance + bent - problem.beta * ((g - 0.5 * _times(N, a)) * a).sum(1)


def next_bend(
    surface: Surface,
    problem: Problem,
    point: Point,
    trial: Point,
    eta: Float[Tensor, " B"],
    change: Float[Tensor, " B"],
    bend: Float[Tensor, " B"],
) -> Float[Tensor, " B"]:
    """What the way to ``trial`` met of the Lagrangian's curvature beyond what the latent step's model knows.

    ``eta`` is the multiplier there, ``change`` what the model with the last ``bend`` said of the objective.
    """
    by = trial.u - point.u
    (grad_f, grad_h), (trial_f, trial_h) = gradients(surface, problem, point), gradients(surface, problem, trial)
    square = by.square().sum(1)
    met = (by * (trial_f - grad_f + eta.unsqueeze(1) * (trial_h - grad_h))).sum(1)
    known = 2 * (change - (by * grad_f).sum(1)) - bend * square
    found = ((met - known) / square.clamp(min=_TELLING)).clamp(_LEAST_BEND, _MOST_BEND)
    return torch.where(square > _TELLING, found, bend)


def full_step(
    surface: Surface,
    problem: Problem,
    point: Point,
    damping: Float[Tensor, " B"],
    bend: Float[Tensor, " B"],
    eta: Float[Tensor, " B"],
) -> tuple[Float[Tensor, "B D"], Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Newton step on the Lagrangian with the multiplier ``eta``; it knows every bend itself."""
    grad_f, grad_h = gradients(surface, problem, point)
    hessian = _lagrangian_hessian(surface, problem, point, eta)
    M = _positive(_reduced(problem, point.u, hessian, grad_f + eta.unsqueeze(1) * grad_h, grad_h), damping)
    everyones = surface.density.precision.expand(len(point.u), -1, -1)
    spread = products(products(point.jacobian.mT, everyones), point.jacobian)
    M = M + _LATENT_DAMPING * (damping * problem.beta).view(-1, 1, 1) * spread
    cap = _multiplier_cap(problem, point, grad_h, eta)
    low, high = problem.lower - point.u, problem.upper - point.u
    free, step = high > low, torch.zeros_like(point.u)
    settled = torch.zeros_like(eta, dtype=torch.bool)
    eye = torch.eye(M.shape[1], dtype=M.dtype, device=M.device)
    for _ in range(_ROUNDS):
        held = torch.where(free, torch.zeros_like(step), step)
        both = (free.unsqueeze(1) & free.unsqueeze(2)).to(M.dtype)
        sides = torch.stack([grad_f + _times(M, held), grad_h], 2) * free.unsqueeze(2)
        solved = solve(M * both + eye * (~free).unsqueeze(1), sides)
        steepness = (grad_h * solved[:, :, 1]).sum(1).clamp(min=1e-12)
        gap = point.h + (grad_h * held).sum(1)
        multiplier = ((gap - (grad_h * solved[:, :, 0]).sum(1)) / steepness).clamp(-cap, cap)
        wish = torch.where(free, -solved[:, :, 0] - multiplier.unsqueeze(1) * solved[:, :, 1], held)
        pull = grad_f + multiplier.unsqueeze(1) * grad_h + _times(M, wish)
        # a held column is released when its multiplier has the wrong sign
        released = ~free & (high > low) & (((step <= low) & (pull < 0)) | ((step >= high) & (pull > 0)))
        inside = (free & (wish > low) & (wish < high)) | released
        step = torch.where(settled.unsqueeze(1), step, wish.clamp(low, high))
        eta = torch.where(settled, eta, multiplier)
        settled = settled | (inside == free).all(1)
        if bool(settled.all()):
            break
        free = torch.where(settled.unsqueeze(1), free, inside)
    change = ((grad_f + 0.5 * _times(M, step)) * step).sum(1)
    return _bent_back(surface, problem, point.u + step, grad_h), eta, change


def _bent_back(
    surface: Surface, problem: Problem, u: Float[Tensor, "B D"], grad_h: Float[Tensor, "B D"]
) -> Float[Tensor, "B D"]:
    """Second-order correction: a long step along a bent boundary leaves it, so return along the old normal."""
    _, h = objective(surface, problem, u)
    normal = grad_h * ((u > problem.lower) & (u < problem.upper))
    length = normal.square().sum(1).clamp(min=1e-12)
    return (u - (h / length).unsqueeze(1) * normal).clamp(problem.lower, problem.upper)


def _multiplier_cap(
    problem: Problem, point: Point, grad_h: Float[Tensor, "B D"], eta: Float[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """A few times the multiplier that the row would need without bounds.

    Where the linearised constraint cannot be met inside the box the multiplier has no limit, and the step would run
    into a corner far away; capped, it goes part of the way and the next linearisation sees further.
    """
    movable = problem.upper > problem.lower
    steepness = (grad_h.square() * movable).sum(1).clamp(min=1e-12)
    return 4 * (eta.abs() + point.h.abs() / steepness)


def _concave_part(surface: Surface, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B d d"]:
    """N >= 0: minus the Hessian of log p with its positive eigenvalues cut off."""
    values, vectors = eigh(-curvature(surface.density, latent))
    return products(vectors * values.clamp(min=0).unsqueeze(1), vectors.mT)


def _lagrangian_hessian(
    surface: Surface, problem: Problem, point: Point, eta: Float[Tensor, " B"]
) -> Float[Tensor, "B D D"]:
    """I - beta J'HJ + sum_k (eta s theta - beta g)_k (Hessian of latent k)."""
    beta = problem.beta.unsqueeze(1)
    pull = (eta * problem.sign).unsqueeze(1) * surface.model.theta - beta * point.score
    encoder_part = surface.model.bend(point.u, pull)
    H = curvature(surface.density, point.latent)
    density_part = products(products(point.jacobian.mT, H), point.jacobian)
    eye = torch.eye(point.u.shape[1], dtype=point.u.dtype, device=point.u.device)
    return eye + encoder_part - beta.unsqueeze(2) * density_part


def _reduced(
    problem: Problem,
    u: Float[Tensor, "B D"],
    hessian: Float[Tensor, "B D D"],
    gradient: Float[Tensor, "B D"],
    grad_h: Float[Tensor, "B D"],
) -> Float[Tensor, "B D D"]:
    """The Hessian as it matters: without the columns that are held at a bound, and steep along the normal.

    Negative curvature across the boundary, or in a column that cannot move, is no reason to distort the step; added
    steepness along the normal leaves the solution under the linearised constraint as it is.
    """
    held = ((u <= problem.lower) & (gradient > 0)) | ((u >= problem.upper) & (gradient < 0))
    free = (~held & (problem.upper > problem.lower)).to(u.dtype)
    inner = hessian * (free.unsqueeze(1) * free.unsqueeze(2)) + torch.diag_embed(1 - free)
    normal = grad_h * free
    normal = normal / normal.norm(dim=1, keepdim=True).clamp(min=1e-12)
    lift = 2 * inner.abs().sum(2).amax(1)
    return inner + lift.view(-1, 1, 1) * normal.unsqueeze(1) * normal.unsqueeze(2)


def _positive(M: Float[Tensor, "B D D"], damping: Float[Tensor, " B"]) -> Float[Tensor, "B D D"]:
    """Add the damping and turn every eigenvalue positive: the step has to be downhill."""
    values, vectors = eigh(M)
    values = torch.where(values < 0, -_FLAT * values, values).clamp(min=_FLAT) + damping.unsqueeze(1)
    return (vectors * values.unsqueeze(1)) @ vectors.mT


def _times(matrix: Float[Tensor, "B m n"], vector: Float[Tensor, "B n"]) -> Float[Tensor, "B m"]:
    return torch.bmm(matrix, vector.unsqueeze(2)).squeeze(2)
