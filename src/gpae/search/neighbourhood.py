"""Favourable people nearby: where a search may begin, and how far a plan lies from what there is."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gpae.kernels.neighbours import NearRows, plain_nearest
from gpae.numerics.tiles import in_tiles
from gpae.table.constraint import Array

__all__ = ["Neighbourhood", "Surroundings"]

_FEW = 5
"""The nearest rows whose mean distance says how far a plan lies from the data."""
_BLOCK = 8
"""Plans of a person that are measured together, and"""
_BLOCKS = 16
"""how many such blocks at once, where nothing is compiled."""


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """All favourable rows, in columns scaled to one standard deviation: packed once, asked about often."""

    favourable: Array
    """N x D: as encoded, and"""
    there: NDArray[np.float32]
    """scaled."""
    scale: Array
    """D: one over the standard deviation of numbers, 1 for everything else."""
    usual: Array
    """D: the mean of the rows, which for a level is how common it is."""
    compiled: NearRows | None

    @classmethod
    def of(cls, favourable: Array, scale: Array) -> "Surroundings":
        """Pack them."""
        there = np.asarray(favourable * scale, dtype=np.float32)
        return cls(favourable, there, scale, favourable.mean(axis=0), NearRows.of(there))

    def near(self, x: Array, n: int) -> "Neighbourhood":
        """The n rows that are nearest to each of some people; nobody's depend on who else asks."""
        here, n = np.asarray(x * self.scale, dtype=np.float32), min(n, len(self.there))
        compiled = self.compiled
        index = plain_nearest(self.there, here, n) if compiled is None else compiled.nearest(here, n)
        return Neighbourhood(self, index)


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """For each of P people the M nearest favourable rows.

    Distances of plans are to these M only: a plan leads from a person to somewhere between them.
    """

    around: Surroundings
    index: NDArray[np.int64]
    """P x M: which of them are near, nearest first."""

    def __len__(self) -> int:
        """How many rows each person has nearby."""
        return self.index.shape[1]

    def people(self, index: NDArray[np.intp]) -> "Neighbourhood":
        """That of some of the people."""
        return replace(self, index=self.index[index])

    def starts(self, n: int) -> tuple[NDArray[np.intp], Array]:
        """Each person's n nearest rows: whose, and the encoded rows."""
        near = self.index[:, :n]
        return np.repeat(np.arange(len(near)), near.shape[1]), self.around.favourable[near.ravel()]

    def distance(self, person: NDArray[np.intp], U: Array) -> Array:
        """How far each plan lies from its few nearest rows, on average."""
        if not len(U):
            return np.zeros(0)
        plans, few = np.asarray(U * self.around.scale, dtype=np.float32), min(_FEW, len(self))
        if self.around.compiled is not None:
            return self.around.compiled.distances(self.index, person, plans, few)
        return self._plain_distance(person, torch.from_numpy(plans), few)

    def _plain_distance(self, person: NDArray[np.intp], plans: Float[Tensor, "n D"], few: int) -> Array:
        """A person's plans are taken together, eight at a time, and their rows gathered once for all of them."""
        order = np.argsort(person, kind="stable")
        whose, block, place = _blocks(person[order])
        together = torch.zeros(len(whose), _BLOCK, plans.shape[1])
        together[block, place] = plans[order]
        there = torch.from_numpy(self.around.there)

        def mean(near: Int[Tensor, "b M"], plans: Float[Tensor, "b n D"]) -> tuple[Float[Tensor, "b n"]]:
            # differences first: a product of numbers far from 0 would lose what is between them
            far = torch.cdist(plans, there[near], compute_mode="donot_use_mm_for_euclid_dist")
            return (far.topk(few, dim=2, largest=False).values.mean(2),)

        (means,) = in_tiles(mean, (torch.from_numpy(self.index[whose]), together), _BLOCKS)
        far = np.empty(len(plans))
        far[order] = means[block, place].numpy()
        return far


def _blocks(person: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Sorted people in blocks of one person each: whose each block is, and each one's block and place in it."""
    turn = np.arange(len(person)) - np.searchsorted(person, person)
    first = turn % _BLOCK == 0
    block = np.cumsum(first) - 1
    return person[first], block, turn % _BLOCK
