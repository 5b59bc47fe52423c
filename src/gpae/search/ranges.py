"""Ranges instead of points: how far a feature of a plan may go before the decision turns.

With all other changes as in the plan, a number is moved away from its value on either side, on values that the person
may have, until the model's answer turns or the range of what is allowed ends; then the place is narrowed down by
halving, to the very step where there are steps. For a level, all others are tried. What is said of a range holds at
every value that was asked about: at each of its steps where it has no more than 32 on either side, else at 32 evenly
spaced values and at its ends, so that a model that turns back and forth within less can do so unseen.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.search.refine import Judge
from gpae.table.constraint import Array, Mask, is_number
from gpae.table.freedom import Freedom
from gpae.table.value_block import ValueBlock

__all__ = ["Ranges", "ranges_of"]

_POINTS = 32
"""Values on each side, evenly spaced, that are asked about first."""
_HALVINGS = 24
_NARROW = 1e-6
"""Of the way to the end: so near, an end without steps is found."""
_AT_ONCE = 50_000
"""Trials that are made and judged together."""


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
        everybody = np.arange(len(self.plan))
        index = np.repeat(everybody, _POINTS)
        asked = start[index] + np.tile(shares, len(self.plan)) * (stop - start)[index]
        good = self._accepted(index, asked).reshape(-1, _POINTS)
        reached = np.where(good.all(axis=1), _POINTS, good.argmin(axis=1))
        inside = reached / _POINTS
        outside = np.minimum(reached + 1, _POINTS) / _POINTS
        for _ in range(_HALVINGS):
            at = np.flatnonzero(outside - inside > self._resolution(start, stop))
            if not len(at):
                break
            middle = (inside + outside)[at] / 2
            fine = self._accepted(at, start[at] + middle * (stop - start)[at])
            inside[at], outside[at] = np.where(fine, middle, inside[at]), np.where(fine, outside[at], middle)
        ends = self._values(everybody, *self._moved(everybody, start + inside * (stop - start)))
        return np.where(inside > 0.0, ends, start)

    def _resolution(self, start: Array, stop: Array) -> Array:
        """The share of the way within which there is nothing left to find out: half a step, where there are steps."""
        step = np.zeros(len(start))
        for i in np.unique(self.feature).tolist():
            step[self.feature == i] = self._block(i).grid.step or 0.0
        return np.maximum(0.5 * step / np.maximum(np.abs(stop - start), 1e-300), _NARROW)

    def _block(self, i: int) -> ValueBlock:
        """The encoded columns of a number."""
        block = self.freedom.layout.features[i]
        assert isinstance(block, ValueBlock)
        return block

    def _ends(self) -> tuple[Array, Array]:
        """Where each number is, and as far as it may go; codes are states, which no range of amounts reaches."""
        bound = self.freedom.upper if self.side > 0 else self.freedom.lower
        start = self.freedom.values(self.U, self.person)[self.plan, self.feature]
        stop = start.copy()
        for i in np.unique(self.feature).tolist():
            mine, feature, block = self.feature == i, self.freedom.schema.features[i], self._block(i)
            end = block.scaling.to_user(bound[self.person[self.plan[mine]], block.start])
            if feature.codes:
                state = np.isin(start[mine], feature.codes)
                end = np.where(state, start[mine], np.clip(end, feature.minimum, feature.maximum))
            stop[mine] = end
        return start, np.where((stop - start) * self.side > 0, stop, start)

    def _moved(self, index: NDArray[np.intp], asked: Array) -> tuple[Array, NDArray[np.intp]]:
        """The plans with the number at the asked value, or the nearest that is allowed, and whose they are."""
        trial = self.U[self.plan[index]].copy()
        for i in np.unique(self.feature[index]).tolist():
            mine, block = self.feature[index] == i, self._block(i)
            trial[mine, block.start] = block.scaling.to_unit(asked[mine])
        whose = self.person[self.plan[index]]
        people = self.freedom.rows(whose)
        return people.layout.snap(trial, people.x, people.lower, people.upper), whose

    def _accepted(self, index: NDArray[np.intp], asked: Array) -> Mask:
        """Whether the model accepts the plans with the number at the asked values; asked once about each row."""
        parts = [slice(at, at + _AT_ONCE) for at in range(0, len(index), _AT_ONCE)]
        none = np.zeros(0, dtype=np.bool_)
        return np.concatenate([none, *(self._accepted_together(index[part], asked[part]) for part in parts)])

    def _accepted_together(self, index: NDArray[np.intp], asked: Array) -> Mask:
        trial, whose = self._moved(index, asked)
        value = self._values(index, trial, whose)
        _, first, again = np.unique(np.column_stack([index, value]), axis=0, return_index=True, return_inverse=True)
        whose, trial = whose[first], trial[first]
        good = self.freedom.rows(whose).permits(trial)
        good[good] = self.judge.accepts(self.freedom, whose[good], trial[good])
        return good[again.reshape(-1)]

    def _values(self, index: NDArray[np.intp], trial: Array, whose: NDArray[np.intp]) -> Array:
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
