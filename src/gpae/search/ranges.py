"""Ranges instead of points: how far a feature of a plan may go before the decision turns.

With all other changes as in the plan, a number is moved away from its value on either side, on values that the person
may have, until the model's answer turns or the range of what is allowed ends; then the place is narrowed down by
halving. For a level, all others are tried. What is said of a range holds at every value that was asked about.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.search.refine import Judge
from gpae.table.constraint import Array, Mask, is_number
from gpae.table.freedom import Freedom

__all__ = ["Ranges", "ranges_of"]

_POINTS = 12
"""Values on each side, evenly spaced, that are asked about first."""
_HALVINGS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """For each changed feature of each plan: where it may lie."""

    plan: NDArray[np.intp]
    feature: NDArray[np.intp]
    low: Array
    high: Array
    """In the user's units; for levels the plan's own rank."""
    levels: list[Mask | None]
    """For levels: which of them would do."""


def ranges_of(freedom: Freedom, judge: Judge, person: NDArray[np.intp], U: Array) -> Ranges:
    """Find the ranges of plans (n x D) of the people at ``person``; the plans themselves are taken to be accepted."""
    layout = freedom.layout
    plan, feature = np.nonzero(layout.changed(U, freedom.x[person]))
    number = np.array([is_number(one) for one in freedom.schema.features])[feature]
    values = freedom.values(U, person)[plan, feature]
    low, high = values.copy(), values.copy()
    moved = np.flatnonzero(number)
    for ends, side in ((low, -1), (high, 1)):
        ends[moved] = _Side(freedom, judge, person, U, plan[moved], feature[moved], side).end()
    levels = _levels(freedom, judge, person, U, plan, feature, ~number)
    return Ranges(plan, feature, low, high, levels)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """The numbers of plans, each to be moved one way."""

    freedom: Freedom
    judge: Judge
    person: NDArray[np.intp]
    U: Array
    plan: NDArray[np.intp]
    feature: NDArray[np.intp]
    side: int

    def end(self) -> Array:
        """The last value, in the user's units, up to which every value asked about was accepted."""
        start, stop = self._ends()
        shares = np.arange(1, _POINTS + 1) / _POINTS
        index = np.repeat(np.arange(len(self.plan)), _POINTS)
        asked = start[index] + np.tile(shares, len(self.plan)) * (stop - start)[index]
        good = self._accepted(index, asked).reshape(-1, _POINTS)
        reached = np.where(good.all(axis=1), _POINTS, good.argmin(axis=1))
        inside = reached / _POINTS
        outside = np.minimum(reached + 1, _POINTS) / _POINTS
        everybody = np.arange(len(self.plan))
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            fine = self._accepted(everybody, start + middle * (stop - start))
            inside, outside = np.where(fine, middle, inside), np.where(fine, outside, middle)
        return self._values(everybody, start + inside * (stop - start))

    def _column(self) -> NDArray[np.intp]:
        return np.array([block.start for block in self.freedom.layout.features])[self.feature]

    def _ends(self) -> tuple[Array, Array]:
        """Where each number is, and as far as it may go; codes are states, which no range of amounts reaches."""
        column = self._column()
        bound = self.freedom.upper if self.side > 0 else self.freedom.lower
        start = self.U[self.plan, column]
        stop = bound[self.person[self.plan], column]
        for i in np.unique(self.feature):
            block, feature = self.freedom.layout.features[i], self.freedom.schema.features[i]
            if feature.codes:
                mine = self.feature == i
                least, most = (float(block.encode(np.array([end]))[0, 0]) for end in (feature.minimum, feature.maximum))
                state = np.isin(block.decode(self.U[self.plan[mine]][:, block.columns]), feature.codes)
                stop[mine] = np.where(state, start[mine], np.clip(stop[mine], least, most))
        return start, np.where((stop - start) * self.side > 0, stop, start)

    def _moved(self, index: NDArray[np.intp], asked: Array) -> tuple[Array, Freedom]:
        """The plans with the number at the asked value, or the nearest that is allowed, and the people they are of."""
        trial = self.U[self.plan[index]].copy()
        trial[np.arange(len(index)), self._column()[index]] = asked
        people = self.freedom.rows(self.person[self.plan[index]])
        return people.layout.snap(trial, people.x, people.lower, people.upper), people

    def _accepted(self, index: NDArray[np.intp], asked: Array) -> Mask:
        trial, people = self._moved(index, asked)
        good = people.permits(trial)
        whose = self.person[self.plan[index]]
        good[good] = self.judge.accepts(self.freedom, whose[good], trial[good])
        return good

    def _values(self, index: NDArray[np.intp], asked: Array) -> Array:
        trial, _ = self._moved(index, asked)
        whose = self.person[self.plan[index]]
        return self.freedom.values(trial, whose)[np.arange(len(index)), self.feature[index]]


def _levels(
    freedom: Freedom,
    judge: Judge,
    person: NDArray[np.intp],
    U: Array,
    plan: NDArray[np.intp],
    feature: NDArray[np.intp],
    which: Mask,
) -> list[Mask | None]:
    """For each changed feature with levels, which levels the model would accept in its place."""
    found: list[Mask | None] = [None] * len(plan)
    for i in np.unique(feature[which]):
        block = freedom.layout.features[i]
        n = len(freedom.schema.features[i].levels)
        mine = np.flatnonzero(which & (feature == i))
        settings = block.encode(np.arange(n, dtype=np.float64))
        trial = np.repeat(U[plan[mine]], n, axis=0)
        trial[:, block.columns] = np.tile(settings, (len(mine), 1))
        whose = np.repeat(person[plan[mine]], n)
        good = freedom.rows(whose).permits(trial)
        good[good] = judge.accepts(freedom, whose[good], trial[good])
        for at, mask in zip(mine, good.reshape(len(mine), n), strict=True):
            found[at] = mask
    return found
