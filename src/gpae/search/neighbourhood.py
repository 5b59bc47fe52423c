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
_BLOCK = 8
"""Plans of a person that are measured together, and"""
_BLOCKS = 16
"""how many such blocks at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """For each of P people the M nearest favourable rows, in columns scaled to one standard deviation.

    Distances of plans are to these M only: a plan leads from a person to somewhere between them.
    """

    scale: Float[Tensor, " D"]
    origin: Float[Tensor, "P D"]
    """The people, scaled."""
    rows: Float[Tensor, "P M D"]
    """As seen from the person, scaled, nearest first: numbers that stay exact in single precision."""
    squares: Float[Tensor, "P M"]
    """Their squared lengths."""
    usual: Array
    """D: the mean of all favourable rows, which for a level is how common it is."""

    @classmethod
    def of(cls, x: Array, favourable: Array, scale: Array, n: int) -> "Neighbourhood":
        """Find them; every person's in tiles of one size, so that nobody's depend on who else asks."""
        unit = torch.as_tensor(scale, dtype=torch.float32)
        origin, there = (torch.as_tensor(part * scale, dtype=torch.float32) for part in (x, favourable))
        size = there.square().sum(1)

        def nearest(people: Float[Tensor, "B D"]) -> tuple[Int[Tensor, "B M"]]:
            far = size - 2.0 * people @ there.T
            return (far.topk(min(n, len(there)), dim=1, largest=False).indices,)

        (index,) = in_tiles(nearest, (origin,))
        rows = there[index] - origin.unsqueeze(1)
        return cls(unit, origin, rows, rows.square().sum(2), favourable.mean(axis=0))

    def people(self, index: NDArray[np.intp]) -> "Neighbourhood":
        """That of some of the people."""
        at = torch.as_tensor(index)
        return Neighbourhood(self.scale, self.origin[at], self.rows[at], self.squares[at], self.usual)

    def starts(self, n: int) -> tuple[NDArray[np.intp], Array]:
        """Each person's n nearest rows: whose, and the encoded rows."""
        rows = (self.rows[:, :n] + self.origin.unsqueeze(1)) / self.scale
        person = np.repeat(np.arange(len(rows)), rows.shape[1])
        return person, rows.flatten(0, 1).numpy().astype(np.float64)

    def distance(self, person: NDArray[np.intp], U: Array) -> Array:
        """How far each plan lies from its few nearest rows, on average.

        A person's plans are taken together, eight at a time: one product for all of them with the person's rows.
        """
        if not len(U):
            return np.zeros(0)
        order = np.argsort(person, kind="stable")
        whose, block, place = _blocks(person[order])
        plans = torch.zeros(len(whose), _BLOCK, U.shape[1])
        plans[block, place] = torch.as_tensor(U[order], dtype=torch.float32) * self.scale
        (mean,) = in_tiles(self._far, (torch.as_tensor(whose), plans), _BLOCKS)
        far = np.empty(len(U))
        far[order] = mean[block, place].numpy()
        return far

    def _far(self, whose: Int[Tensor, " b"], plans: Float[Tensor, "b n D"]) -> tuple[Float[Tensor, "b n"]]:
        rows, plans = self.rows[whose], plans - self.origin[whose].unsqueeze(1)
        square = torch.baddbmm(self.squares[whose].unsqueeze(1), plans, rows.transpose(1, 2), alpha=-2.0)
        few = square.topk(min(_FEW, square.shape[2]), dim=2, largest=False, sorted=False).values
        few = (few + plans.square().sum(2, keepdim=True)).clamp_min(0.0)
        return (few.sqrt().mean(2),)


def _blocks(person: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Sorted people in blocks of one person each: whose each block is, and each one's block and place in it."""
    turn = np.arange(len(person)) - np.searchsorted(person, person)
    first = turn % _BLOCK == 0
    block = np.cumsum(first) - 1
    return person[first], block, turn % _BLOCK
