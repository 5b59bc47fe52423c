"""The counterfactual problem as data.

    min   1/2 |u - x|^2 - beta log p(f_e(u))
    s.t.  h(u) = s g(u) - m = 0,   lower <= u <= upper

for each row x (ways in the surface's units, where it has any), with s = +1 or -1 the side of the target class, m > 0
the margin in logit units (E7) and g the classifier's logit. Immutable columns have lower = upper = x, so a mask is a
box like any other.
"""

from dataclasses import dataclass, fields, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from gpae.numerics.aligned import width
from gpae.numerics.autoencoder import logit
from gpae.numerics.density import Tilt, log_density, score
from gpae.numerics.encoder import Encoder

_AT_BOUND = 1e-6
"""A column this near to its bound is held there; the residual still counts the gap itself."""
ARRIVED, ASTRAY = 1e-3, 0.01
"""The residual, and the share of the margin by which the boundary is missed, above which a relaxed row is stalled."""

__all__ = [
    "ARRIVED",
    "ASTRAY",
    "Point",
    "Problem",
    "Solution",
    "Surface",
    "gradients",
    "kkt_residual",
    "linearise",
    "merged",
    "objective",
    "stalled",
    "widened",
]


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """What the search walks on: the encoder with its classifier, and the latent density."""

    model: Encoder
    density: Tilt
    device: Literal["cpu", "cuda"] = "cpu"
    """Where single precision is worked, if the search is a compiled one."""
    units: Float[Tensor, " D"] | None = None
    """By what columns are multiplied before a way is measured; None: by nothing.

    :func:`objective` knows them; a solver is given the stretched problem (:mod:`gpae.search.units`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One problem a row."""

    x: Float[Tensor, "B D"]
    lower: Float[Tensor, "B D"]
    upper: Float[Tensor, "B D"]
    beta: Float[Tensor, " B"]
    sign: Float[Tensor, " B"]
    margin: Float[Tensor, " B"]

    def rows(self, index: Int[Tensor, " n"]) -> "Problem":
        """The problems of some of the rows."""
        n = len(self.x)
        if len(index) == n and bool((index == torch.arange(n, device=index.device)).all()):
            return self  # as in arrays.py: a table's memory takes longer to fetch
        return Problem(*(getattr(self, f.name)[index] for f in fields(self)))

    def tensors(self) -> tuple[Tensor, ...]:
        """The fields in order, for code that works on row tensors."""
        return tuple(getattr(self, f.name) for f in fields(self))


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What a solver returns, one entry a row; ``violation`` and ``kkt`` are measured at the returned point."""

    u: Float[Tensor, "B D"]
    objective: Float[Tensor, " B"]
    violation: Float[Tensor, " B"]
    kkt: Float[Tensor, " B"]
    iterations: Int[Tensor, " B"]

    def cropped(self, n_columns: int) -> "Solution":
        """Without the columns that :func:`widened` added."""
        return replace(self, u=self.u[:, :n_columns])

    def rows(self, index: Int[Tensor, " n"]) -> "Solution":
        """The entries of some of the rows."""
        return Solution(*(getattr(self, f.name)[index] for f in fields(self)))

    def replaced(self, index: Int[Tensor, " n"], part: "Solution") -> "Solution":
        """With some of the rows from ``part``."""
        names = [f.name for f in fields(self)]
        return Solution(*(getattr(self, name).index_put((index,), getattr(part, name)) for name in names))


def stalled(problem: Problem, solution: Solution) -> Bool[Tensor, " B"]:
    """Which rows a solver left before they had arrived."""
    return (solution.kkt > ARRIVED) | (solution.violation > ASTRAY * problem.margin)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Everything first order at a point: values, the Jacobian of the latent and the density's score."""

    u: Float[Tensor, "B D"]
    latent: Float[Tensor, "B d"]
    jacobian: Float[Tensor, "B d D"]
    score: Float[Tensor, "B d"]
    objective: Float[Tensor, " B"]
    h: Float[Tensor, " B"]


def widened(surface: Surface, problem: Problem) -> tuple[Surface, Problem]:
    """The same problem with columns of zeros up to a multiple of eight, so that every row is in step in memory.

    Such a column means nothing to the encoder and has bounds of width zero: it takes part in nothing.
    """
    extra = width(problem.x.shape[1]) - problem.x.shape[1]
    if extra == 0:
        return surface, problem
    x, lower, upper = (pad(t, (0, extra)) for t in (problem.x, problem.lower, problem.upper))
    units = None if surface.units is None else pad(surface.units, (0, extra), value=1.0)
    return (
        replace(surface, model=surface.model.widened(extra), units=units),
        Problem(x, lower, upper, problem.beta, problem.sign, problem.margin),
    )


def objective(
    surface: Surface, problem: Problem, u: Float[Tensor, "B D"]
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Return 1/2 |u - x|^2 - beta log p and h = s g - m."""
    latent = surface.model.encode(u)
    return _values(surface, problem, u, latent)


def linearise(surface: Surface, problem: Problem, u: Float[Tensor, "B D"]) -> Point:
    """Values and first derivatives at u."""
    latent, jacobian = surface.model.encode_with_jacobian(u)
    value, h = _values(surface, problem, u, latent)
    return Point(u, latent, jacobian, score(surface.density, latent), value, h)


def merged(take: Bool[Tensor, " B"], new: Point, old: Point) -> Point:
    """Row by row, the new point where ``take``, the old one elsewhere."""

    def pick(name: str) -> Tensor:
        a, b = getattr(new, name), getattr(old, name)
        return torch.where(take.view(-1, *[1] * (a.dim() - 1)), a, b)

    return Point(*(pick(f.name) for f in fields(Point)))


def _values(
    surface: Surface, problem: Problem, u: Float[Tensor, "B D"], latent: Float[Tensor, "B d"]
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    way = u - problem.x if surface.units is None else (u - problem.x) * surface.units
    value = 0.5 * way.square().sum(1) - problem.beta * log_density(surface.density, latent)
    return value, problem.sign * logit(surface.model, latent) - problem.margin


def gradients(surface: Surface, problem: Problem, point: Point) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]:
    """Of the objective and of h."""
    uphill = torch.bmm(point.score.unsqueeze(1), point.jacobian).squeeze(1)
    theta = problem.sign.unsqueeze(1) * surface.model.theta
    grad_h = torch.bmm(theta.unsqueeze(1), point.jacobian).squeeze(1)
    return point.u - problem.x - problem.beta.unsqueeze(1) * uphill, grad_h


def kkt_residual(surface: Surface, problem: Problem, point: Point) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Scaled first-order residual and its best multiplier eta.

    The Lagrangian's gradient, projected onto the bounds, in the sup norm, over max(1, |delta|, |eta| |J theta|), all of
    columns whose bounds leave room. The multiplier is the least-squares one over the columns that are free to move.
    """
    delta, (grad_f, grad_h) = point.u - problem.x, gradients(surface, problem, point)
    eta = _multiplier(problem, point.u, grad_f, grad_h)
    gradient = grad_f + eta.unsqueeze(1) * grad_h
    projected = point.u - torch.clamp(point.u - gradient, problem.lower, problem.upper)
    movable = problem.upper > problem.lower
    way, steepness = ((part * movable).norm(dim=1) for part in (delta, grad_h))
    scale = torch.maximum(way, eta.abs() * steepness).clamp(min=1.0)
    return projected.abs().amax(1) / scale, eta


def _multiplier(
    problem: Problem, u: Float[Tensor, "B D"], grad_f: Float[Tensor, "B D"], grad_h: Float[Tensor, "B D"]
) -> Float[Tensor, " B"]:
    """Least-squares eta over the free columns; those held at a bound by their sign are found in a few rounds."""
    movable = problem.upper > problem.lower
    free = movable
    eta = torch.zeros_like(problem.beta)
    for _ in range(4):
        numerator = (grad_f * grad_h * free).sum(1)
        denominator = (grad_h.square() * free).sum(1)
        eta = torch.where(denominator > 0, -numerator / denominator.clamp(min=1e-300), eta)
        gradient = grad_f + eta.unsqueeze(1) * grad_h
        held = ((u <= problem.lower + _AT_BOUND) & (gradient > 0)) | ((u >= problem.upper - _AT_BOUND) & (gradient < 0))
        free = movable & ~held
    return eta
