"""Straight ways across a surrogate's boundary: quick proposals for a search on the model itself.

From each person on, a few projected Newton steps onto g(u) = m, with the squared way in standard deviations as the
measure,

    u <- clip(u + (m - g) D^-2 grad g / |D^-1 grad g|^2),

columns at a bound that the step would leave being left out. Where the model has said something else about rows r_j of a
person, the surrogate is mended there: it is a Gaussian process with a kernel k of length-scale b and size s^2, and what
the model says moves its mean by

    sum_j a_j k(u, r_j),    a = (K + noise I)^-1 (said - g(r)),    k(u, r) = s^2 exp(-|u - r|^2 / 2 b^2),

for that person alone, and fading with the distance.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from gpae.kernels.slopes import Slope
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.tiles import in_tiles
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom

__all__ = ["Kernel", "Said", "straight_ways"]

_TILE = 128
"""People who are led together: fewer take longer each, and one alone has to wait for no more."""
_STEPS = 4
_SHORTEST = 1e-12


@dataclass(frozen=True, slots=True)
class Kernel:
    """Of the Gaussian process that a surrogate is."""

    length_scale: float
    size: float
    """Its standard deviation."""
    noise: float
    """Of what the model says."""

    def __call__(self, x: Float[Tensor, "B n D"], y: Float[Tensor, "B m D"]) -> Float[Tensor, "B n m"]:
        """k(x, y), pair by pair."""
        square = (x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3)
        return self.size**2 * torch.exp(-square / (2.0 * self.length_scale**2))


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What the model has said about m rows of each of B people."""

    rows: Array
    """B x m x D."""
    logits: Array
    """B x m."""


def straight_ways(
    model: AutoEncoder, freedom: Freedom, scale: Array, margin: float, kernel: Kernel, said: Said | None = None
) -> tuple[NDArray[np.intp], Array]:
    """One way for each person to a logit of ``margin``: whose, and where it ends; levels and steps not yet whole."""
    walk = _Walk(Slope.of(model), kernel, _single(1.0 / np.square(scale)), margin)
    people = [_single(part) for part in (freedom.x, freedom.lower, freedom.upper)]
    if said is not None:
        people += [_single(said.rows), _single(said.logits)]
    (ends,) = in_tiles(walk, people, _TILE)
    return np.arange(len(freedom)), np.asarray(ends.numpy(), dtype=np.float64)


def _single(part: Array) -> Tensor:
    """Where a way leads is all that is asked of it: single precision will do."""
    return torch.as_tensor(part, dtype=torch.float32)


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """The steps of a tile of people."""

    slope: Slope
    kernel: Kernel
    unit: Float[Tensor, " D"]
    margin: float

    def __call__(
        self, x: Float[Tensor, "B D"], lower: Float[Tensor, "B D"], upper: Float[Tensor, "B D"], *said: Tensor
    ) -> tuple[Float[Tensor, "B D"]]:
        weights = self._weights(*said) if said else None
        u = x
        for _ in range(_STEPS):
            g, slope = self.slope.unsigned(u)
            if weights is not None:
                more, steeper = self._mended(u, said[0], weights)
                g, slope = g + more, slope + steeper
            short = (self.margin - g).unsqueeze(1)
            way = slope * self.unit * short.sign()
            way = torch.where(((u >= upper) & (way > 0)) | ((u <= lower) & (way < 0)), 0.0, way)
            length = (way * slope).sum(1, keepdim=True).abs().clamp_min(_SHORTEST)
            u = torch.clamp(u + way * short.abs() / length, lower, upper)
        return (u,)

    def _weights(self, rows: Float[Tensor, "B m D"], logits: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """The a of each person's rows."""
        known = self.slope.logits(rows.flatten(0, 1))
        noise = self.kernel.noise**2 * torch.eye(rows.shape[1])
        residual = logits - known.unflatten(0, logits.shape)
        return torch.linalg.solve(self.kernel(rows, rows) + noise, residual)

    def _mended(
        self, u: Float[Tensor, "B D"], rows: Float[Tensor, "B m D"], weights: Float[Tensor, "B m"]
    ) -> tuple[Float[Tensor, " B"], Float[Tensor, "B D"]]:
        """What is added to the logit, and its gradient."""
        each = weights * self.kernel(u.unsqueeze(1), rows).squeeze(1)
        slope = (each.unsqueeze(2) * (rows - u.unsqueeze(1))).sum(1) / self.kernel.length_scale**2
        return each.sum(1), slope
