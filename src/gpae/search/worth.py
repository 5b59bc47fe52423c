"""What plans cost: the way, the number of changes, and how far from favourable people they end."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import picked
from gpae.search.neighbourhood import Neighbourhood
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom

__all__ = ["TASTES", "Preference", "Taste", "Worth"]


@dataclass(frozen=True, slots=True)
class Taste:
    """What makes a plan dear, beside the way itself (half the squared distance in standard deviations)."""

    numbers: float = 2.0
    """The way of numbers beside that of levels, a change of which is a way of 1."""
    change: float = 0.3
    """Each feature that changes."""
    remoteness: float = 1.0
    """The squared distance to the nearest favourable people, in standard deviations."""


Preference = Literal["plausible", "near", "sparse"]
TASTES: dict[str, Taste] = {
    "plausible": Taste(),
    "near": Taste(numbers=1.0, change=0.0, remoteness=0.0),
    "sparse": Taste(numbers=1.0, change=3.0, remoteness=0.0),
}
"""What people prefer, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """The cost of people's plans; less is better."""

    freedom: Freedom
    near: Neighbourhood
    taste: Taste

    @property
    def remoteness(self) -> float:
        """The weight of the squared distance to favourable people."""
        return self.taste.remoteness

    def of(self, person: NDArray[np.intp], U: Array) -> tuple[Array, Array]:
        """All of it, and how far from favourable people the plans end; 0 where that does not count."""
        far = self.far(person, U) if self.remoteness else np.zeros(len(U))
        return self.way(person, U) + self.remoteness * far**2, far

    def way(self, person: NDArray[np.intp], U: Array) -> Array:
        """The squared way in standard deviations, and the changes."""
        (x,), layout = picked(person, self.freedom.x), self.freedom.layout
        # row by row in memory: in what order einsum sums depends on how its tables lie
        step = np.ascontiguousarray((U - x) * self.near.around.scale)
        changed, weights = np.ascontiguousarray(layout.changed(U, x)), self.freedom.weights
        column = np.repeat(weights, [block.width for block in layout.features])
        column = 0.5 * column * np.where(layout.continuous, self.taste.numbers, 1.0)
        changes = np.einsum("ij,j->i", changed, self.taste.change * weights)
        return np.asarray(np.einsum("ij,ij,j->i", step, step, column) + changes)

    def far(self, person: NDArray[np.intp], U: Array) -> Array:
        """The distance to the nearest favourable people."""
        return self.near.distance(person, U)

    def apart(self, U: Array, V: Array) -> Array:
        """The distance in standard deviations between plans: :meth:`far` cannot differ by more."""
        return np.asarray(np.linalg.norm((U - V) * self.near.around.scale, axis=1))
