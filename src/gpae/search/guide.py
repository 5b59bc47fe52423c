"""Straight ways across a surrogate's boundary: quick proposals for a search on the model itself.

From each person on, a few projected Newton steps onto g(u) = m for several m, with the squared way in standard
deviations as the measure,

    u <- clip(u + (m - g) D^-2 grad g / |D^-1 grad g|^2),

columns at a bound that the step would leave being left out. Of a surrogate that is not quite right the ways that go a
little further are the ones that the model accepts; which, it says itself.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from gpae.numerics.autoencoder import AutoEncoder, logit_with_gradient
from gpae.numerics.placement import moved
from gpae.numerics.tiles import in_tiles
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom

__all__ = ["straight_ways"]

_STEPS = 4
_SHORTEST = 1e-12


def straight_ways(
    model: AutoEncoder, freedom: Freedom, scale: Array, margins: Sequence[float]
) -> tuple[NDArray[np.intp], Array]:
    """One way for each person and margin (logit units): whose, and where it ends; levels and steps not yet whole."""
    model = moved(model, device="cpu", dtype=torch.float32)  # where it leads is all that is asked of it
    unit = torch.as_tensor(1.0 / np.square(scale), dtype=torch.float32)

    def walk(
        x: Float[Tensor, "B D"], lower: Float[Tensor, "B D"], upper: Float[Tensor, "B D"], m: Float[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B D"]]:
        u = x
        for _ in range(_STEPS):
            g, gradient = logit_with_gradient(model, u)
            short = (m - g).unsqueeze(1)
            way = gradient * unit * short.sign()
            stuck = ((u >= upper) & (way > 0)) | ((u <= lower) & (way < 0))
            way = torch.where(stuck, 0.0, way)
            length = (way * gradient).sum(1, keepdim=True).abs().clamp_min(_SHORTEST)
            u = torch.clamp(u + way * short.abs() / length, lower, upper)
        return (u,)

    n = len(margins)
    parts = (torch.as_tensor(part, dtype=torch.float32) for part in (freedom.x, freedom.lower, freedom.upper))
    rows = [part.repeat_interleave(n, dim=0) for part in parts]
    (ends,) = in_tiles(walk, [*rows, torch.tensor(margins, dtype=torch.float32).repeat(len(freedom))])
    return np.repeat(np.arange(len(freedom)), n), np.asarray(ends.numpy(), dtype=np.float64)
