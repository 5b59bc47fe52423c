"""Ranges instead of points: how far a feature of a plan may go before the decision turns.

With all other changes as in the plan, a number is moved away from its value on either side, on values that the person
may have, until the model's answer turns or the range of what is allowed ends; then the place is narrowed down by
halving, to the very step where there are steps. For a level, all others are tried. What is said of a range holds at
every value that was asked about: at each of its steps where it has no more than 128 on either side of the plan, else at
128 evenly spaced values on either side and at another 128 that crowd towards the ends of each. Where something inside
is refused the range ends before it, and what is left is asked about in the same way again. A model that turns back and
forth within less can do so unseen.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.kernels.snapping import snap
from gpae.search.refine import Judge
from gpae.table.constraint import Array, Mask, is_number
from gpae.table.freedom import Freedom
from gpae.table.value_block import ValueBlock

__all__ = ["Ranges", "ranges_of"]

_EVEN, _CROWDED, _CLOSER = 128, 64, 0.25
"""Values on each side that are asked about: evenly spaced, and towards either end each closer by this of an octave."""
_FIRST = 8
"""One in so many is asked about first: where it is refused, there is no need to ask about what lies beyond it."""
_PASSES = 4
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
        at = np.arange(len(self.plan))
        for _ in range(_PASSES):
            stop[at], whole = self._last_accepted(at, start[at], stop[at])
            at = at[~whole]
        return stop

    def _last_accepted(self, at: NDArray[np.intp], start: Array, stop: Array) -> tuple[Array, Mask]:
        """How far some of the numbers can go from start towards stop, and which all the way."""
        shares = _shares()
        good = np.ones((len(at), len(shares)), dtype=np.bool_)
        first = np.arange(len(shares))[::-1] % _FIRST == 0
        for some in (first, ~first):
            index, point = np.nonzero(np.logical_and.accumulate(good, axis=1) & some)
            good[index, point] = self._accepted(at[index], start[index] + shares[point] * (stop - start)[index])
        reached = np.where(good.all(axis=1), len(shares), good.argmin(axis=1))
        ends = np.concatenate([[0.0], shares])
        inside, outside = ends[reached], ends[np.minimum(reached + 1, len(shares))]
        finest = self._resolution(at, start, stop)
        for _ in range(_HALVINGS):
            open_ = np.flatnonzero(outside - inside > finest)
            if not len(open_):
                break
            middle = (inside + outside)[open_] / 2
            fine = self._accepted(at[open_], start[open_] + middle * (stop - start)[open_])
            inside[open_] = np.where(fine, middle, inside[open_])
            outside[open_] = np.where(fine, outside[open_], middle)
        last = self._values(at, *self._moved(at, start + inside * (stop - start)))
        return np.where(inside > 0.0, last, start), inside == 1.0

    def _resolution(self, at: NDArray[np.intp], start: Array, stop: Array) -> Array:
        """The share of the way within which there is nothing left to find out: half a step, where there are steps."""
        step = np.zeros(len(start))
        for i in np.unique(self.feature[at]).tolist():
            step[self.feature[at] == i] = self._block(i).grid.step or 0.0
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
        return snap(people.layout, trial, people.x, people.lower, people.upper), whose

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


def _shares() -> Array:
    """Of the way to the end, where to ask; the last is 1."""
    closer = 2.0 ** (-_CLOSER * np.arange(1, _CROWDED + 1))
    return np.unique(np.concatenate([np.arange(1, _EVEN + 1) / _EVEN, closer, 1.0 - closer]))


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
