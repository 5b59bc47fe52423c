"""Favourable people nearby: where a search may begin, and how far a plan lies from what there is."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gpae.numerics.tiles import in_tiles
from gpae.table.constraint import Array

__all__ = ["Neighbourhood"]

_FEW = 5
"""The nearest rows whose mean distance says how far a plan lies from the data."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """For each of P people the M nearest favourable rows, in columns scaled to one standard deviation.

    Distances of plans are to these M only: a plan leads from a person to somewhere between them.
    """

    scale: Float[Tensor, " D"]
    rows: Float[Tensor, "P M D"]
    """Scaled, nearest first."""

    @classmethod
    def of(cls, x: Array, favourable: Array, scale: Array, n: int) -> "Neighbourhood":
        """Find them; every person's in tiles of one size, so that nobody's depend on who else asks."""
        unit = torch.as_tensor(scale, dtype=torch.float32)
        there = torch.as_tensor(favourable * scale, dtype=torch.float32)
        size = there.square().sum(1)

        def nearest(people: Float[Tensor, "B D"]) -> tuple[Int[Tensor, "B M"]]:
            far = size - 2.0 * people @ there.T
            return (far.topk(min(n, len(there)), dim=1, largest=False).indices,)

        (index,) = in_tiles(nearest, (torch.as_tensor(x * scale, dtype=torch.float32),))
        return cls(unit, there[index])

    def people(self, index: NDArray[np.intp]) -> "Neighbourhood":
        """That of some of the people."""
        return Neighbourhood(self.scale, self.rows[torch.as_tensor(index)])

    def starts(self, n: int) -> tuple[NDArray[np.intp], Array]:
        """Each person's n nearest rows: whose, and the encoded rows."""
        rows = self.rows[:, :n] / self.scale
        person = np.repeat(np.arange(len(rows)), rows.shape[1])
        return person, rows.flatten(0, 1).numpy().astype(np.float64)

    def distance(self, person: NDArray[np.intp], U: Array) -> Array:
        """How far each plan lies from its few nearest rows, on average."""
        if not len(U):
            return np.zeros(0)

        def far(whose: Int[Tensor, " B"], u: Float[Tensor, "B D"]) -> tuple[Float[Tensor, " B"]]:
            square = (self.rows[whose] - u.unsqueeze(1)).square().sum(2)
            few = min(_FEW, square.shape[1])
            return (square.topk(few, dim=1, largest=False).values.sqrt().mean(1),)

        plans = torch.as_tensor(U, dtype=torch.float32) * self.scale
        (mean,) = in_tiles(far, (torch.as_tensor(person), plans))
        return mean.numpy().astype(np.float64)
