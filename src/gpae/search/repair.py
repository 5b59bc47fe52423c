"""Rows that obey rules between features: the nearest way back for plans that break one.

A search moves features one by one or all together and knows bounds and steps, not what ties features together. Here
plans are brought back, many at once: features that must follow another's change follow, the smallest changes beyond
the number allowed are taken back, and weighted sums are met by moving the numbers in them for the least cost. What
cannot be mended in a few rounds is left as it is; the caller asks ``Freedom.permits`` about every row.
"""

from dataclasses import dataclass

import numpy as np

from gpae.kernels.snapping import snap
from gpae.table.constraint import Array, Mask, changed
from gpae.table.constraints.at_most import AtMost
from gpae.table.constraints.implies import Implies
from gpae.table.freedom import Freedom
from gpae.table.value_block import ValueBlock

__all__ = ["repaired", "snapped"]

_ROUNDS = 4
_ENOUGH = 1e-9
"""Relative to the size of a sum's terms: closer than this, a bound is met."""


def repaired(freedom: Freedom, U: Array, kept: Mask | None = None) -> tuple[Array, Mask]:
    """Return plans (B x D) on allowed values, brought back to the rules where that is possible, and which are allowed.

    Features that are ``kept`` (B x F) are left as they are: a search that has just moved one wants to see the others
    give way.
    """
    U = snapped(freedom, U)
    ties = _Ties.of(freedom)
    if not ties:  # allowed values are then allowed rows
        return U, np.logical_not(freedom.broken(U).any(axis=1))
    broken = np.flatnonzero(freedom.broken(U).any(axis=1))
    for _ in range(_ROUNDS):
        if not len(broken):
            break
        part = freedom.rows(broken)
        U[broken] = ties.mended(part, U[broken], None if kept is None else kept[broken])
        broken = broken[part.broken(U[broken]).any(axis=1)]
    return U, freedom.permits(U)


def snapped(freedom: Freedom, U: Array) -> Array:
    """The nearest rows on allowed values: whole steps, open levels, inside the bounds."""
    U = snap(freedom.layout, U, freedom.x, freedom.lower, freedom.upper)
    for block, mask in zip(freedom.layout.features, freedom.open, strict=True):
        if mask is not None:
            assert isinstance(block, ValueBlock)
            ranks = block.decode(U[:, block.columns])
            distance = np.abs(np.arange(mask.shape[1]) - ranks[:, None])
            nearest = np.where(mask, distance, np.inf).argmin(axis=1).astype(np.float64)
            U[:, block.columns] = block.encode(np.where(np.isnan(ranks), ranks, nearest))
    return U


@dataclass(frozen=True, slots=True, eq=False)
class _Ties:
    """The constraints that tie features together, in the order in which they are mended."""

    implications: tuple[Implies, ...]
    limits: tuple[AtMost, ...]
    n_sums: int

    @classmethod
    def of(cls, freedom: Freedom) -> "_Ties":
        every = freedom.constraints
        return cls(
            tuple(one for one in every if isinstance(one, Implies)),
            tuple(one for one in every if isinstance(one, AtMost)),
            len(freedom.sums),
        )

    def __bool__(self) -> bool:
        return bool(self.implications or self.limits or self.n_sums)

    def mended(self, freedom: Freedom, U: Array, kept: Mask | None) -> Array:
        """One round."""
        still = np.zeros(freedom.own.shape, dtype=np.bool_) if kept is None else kept
        for limit in self.limits:
            U = _within_limit(freedom, U, limit, still)
        for implication in self.implications:
            U = _followed(freedom, U, implication)
        if self.n_sums:
            U = _summed(freedom, U, still)
        return U


def _within_limit(freedom: Freedom, U: Array, limit: AtMost, kept: Mask) -> Array:
    """Take back the smallest changes beyond the number allowed."""
    size = _change_sizes(freedom, U)
    counted = limit.counted(freedom.schema) & (size > 0)
    # the largest changes stay, and before them those that are to be kept
    order = np.argsort(np.where(counted, -size - 1e9 * kept, np.inf), axis=1, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(order.shape[1])[None], axis=1)
    return _taken_back(freedom, U, counted & (place >= limit.changes))


def _change_sizes(freedom: Freedom, U: Array) -> Array:
    """B x F: the squared distance that each feature has moved."""
    moved = freedom.layout.changed(U, freedom.x)
    square = np.stack([((U - freedom.x)[:, b.columns] ** 2).sum(axis=1) for b in freedom.layout.features], axis=1)
    return np.where(moved, square, 0.0)


def _taken_back(freedom: Freedom, U: Array, which: Mask) -> Array:
    """Give features (B x F) the person's own value again."""
    columns = np.concatenate([np.repeat(which[:, [i]], b.width, 1) for i, b in enumerate(freedom.layout.features)], 1)
    return np.where(columns, freedom.x, U)


def _followed(freedom: Freedom, U: Array, implication: Implies) -> Array:
    """Let the second feature follow by the least that is asked; where it cannot, take the first one's change back."""
    schema = freedom.schema
    lacking = implication.broken(freedom.own, freedom.values(U), schema)
    if not lacking.any():
        return U
    for candidate in _least_moves(freedom, U, implication):
        trial = snapped(freedom, candidate)
        helps = lacking & ~implication.broken(freedom.own, freedom.values(trial), schema)
        U = np.where(helps[:, None], trial, U)
        lacking = lacking & ~helps
    first = np.zeros(freedom.own.shape, dtype=np.bool_)
    first[lacking, schema.names.index(implication.when)] = True
    return _taken_back(freedom, U, first)


def _least_moves(freedom: Freedom, U: Array, implication: Implies) -> list[Array]:
    """The plans with the second feature moved as little as is asked, up and down; for levels, to every other one."""
    at = freedom.schema.names.index(implication.then)
    block, own = freedom.layout.features[at], freedom.own[:, at]
    if isinstance(block, ValueBlock):
        step = block.grid.step or (block.grid.maximum - block.grid.minimum) / 1000.0
        least = np.ceil(max(implication.by, step) / step - _ENOUGH) * step
        ways = {"any": (1.0, -1.0), "up": (1.0,), "down": (-1.0,)}[implication.then_change]
        start = np.where(np.isnan(own), block.grid.minimum, own)
        settings = [block.encode(start + way * least) for way in ways]
    else:
        settings = [np.broadcast_to(level, (len(U), block.width)) for level in np.eye(block.width)]
    trials = []
    for setting in settings:
        trial = U.copy()
        trial[:, block.columns] = setting
        trials.append(trial)
    return trials


def _summed(freedom: Freedom, U: Array, kept: Mask) -> Array:
    """Move numbers until each weighted sum lies in its bounds, one sum after the other."""
    numbers = _Numbers.of(freedom, U, kept)
    sums = freedom.sums
    for weights, low, high in zip(sums.weights, sums.low, sums.high, strict=True):
        numbers.meet(weights, low, high)
    return snapped(freedom, numbers.encoded(freedom, U))


@dataclass(slots=True, eq=False)
class _Numbers:
    """The values of plans in the user's units, and how far each may still move."""

    values: Array
    least: Array
    most: Array
    ease: Array
    """B x F: the square of what a unit of cost moves; 0 where nothing may move."""
    moved: Mask
    """B x F: what has changed already."""
    span: Array
    """F: the width of each number's range."""
    blocks: list[ValueBlock | None]

    @classmethod
    def of(cls, freedom: Freedom, U: Array, kept: Mask) -> "_Numbers":
        values = freedom.values(U)
        least, most = values.copy(), values.copy()
        ease, spans = np.zeros_like(values), np.zeros(values.shape[1])
        blocks: list[ValueBlock | None] = []
        for i, block in enumerate(freedom.layout.features):
            number = isinstance(block, ValueBlock) and block.kind in ("continuous", "integer")
            blocks.append(block if number else None)  # type: ignore[arg-type]
            if not number or not isinstance(block, ValueBlock):
                continue
            ends = [block.scaling.to_user(bound[:, block.start]) for bound in (freedom.lower, freedom.upper)]
            grid = block.grid
            # codes lie outside of the range and are no amounts that could be approached step by step
            least[:, i] = np.maximum(ends[0], np.minimum(grid.minimum, freedom.own[:, i]))
            most[:, i] = np.minimum(ends[1], np.maximum(grid.maximum, freedom.own[:, i]))
            free = (most[:, i] > least[:, i]) & ~kept[:, i] & ~np.isnan(values[:, i])
            spans[i] = max(grid.maximum - grid.minimum, 1e-300)
            ease[:, i] = np.where(free, spans[i] ** 2 / freedom.weights[i], 0.0)
        return cls(values, least, most, ease, changed(freedom.own, values), spans, blocks)

    def meet(self, weights: Array, low: float, high: float) -> None:
        """Bring one sum between its bounds: its numbers share in the way, then single ones make up the rest.

        Numbers that have changed anyhow go first, so that as few as possible change in all.
        """
        with np.errstate(invalid="ignore"):
            for ease in (np.where(self.moved, self.ease, 0.0), self.ease):
                before = self.values.copy()
                self._share(ease, weights, low, high)
                self._round(before, weights)
                for i in np.argsort(-np.abs(weights) * self.span, kind="stable"):
                    if weights[i]:
                        self._settle(int(i), ease, weights, low, high)

    def _missing(self, weights: Array, low: float, high: float) -> Array:
        """What each sum lacks, with its sign; 0 where it is met or does not apply."""
        used = weights != 0
        terms = self.values[:, used] * weights[used]
        total = terms.sum(axis=1)
        near = _ENOUGH * np.maximum(1.0, np.abs(terms).sum(axis=1))
        lack = np.where(total < low - near, low - total, np.where(total > high + near, high - total, 0.0))
        return np.nan_to_num(lack)

    def _share(self, ease: Array, weights: Array, low: float, high: float) -> None:
        """Project onto the bound: each number moves in proportion to its weight and ease, as far as it may."""
        for _ in range(int((weights != 0).sum())):
            lack = self._missing(weights, low, high)
            pull = np.sign(lack)[:, None] * weights
            room = np.where(pull > 0, self.most - self.values, np.where(pull < 0, self.values - self.least, 0.0))
            power = np.where(room > 0, weights**2 * ease, 0.0).sum(axis=1)
            if not ((lack != 0) & (power > 0)).any():
                return
            move = (lack / np.where(power > 0, power, np.inf))[:, None] * weights * ease
            self.values += np.where(room > 0, np.clip(move, -room, room), 0.0)

    def _round(self, before: Array, weights: Array) -> None:
        """Put what was moved on whole steps."""
        for i in np.flatnonzero(weights):
            block = self.blocks[i]
            if block is not None and block.grid.step is not None:
                moved = self.values[:, i] != before[:, i]
                near = block.grid.nearest_between(self.values[:, i], self.least[:, i], self.most[:, i])
                self.values[:, i] = np.where(moved & ~np.isnan(near), near, self.values[:, i])

    def _settle(self, i: int, ease: Array, weights: Array, low: float, high: float) -> None:
        """Let one number make up what is still missing, by whole steps and never less than is missing."""
        lack = self._missing(weights, low, high)
        wanted = self.values[:, i] + lack / weights[i]
        block = self.blocks[i]
        if block is not None and block.grid.step is not None:
            beyond = np.sign(lack / weights[i]) * block.grid.step * (0.5 - 1e-6)
            on_grid = block.grid.nearest(wanted + beyond)
            exact = block.grid.nearest(wanted)
            wanted = np.where(np.abs(exact - wanted) <= 1e-6 * block.grid.step, exact, on_grid)
        fits = (lack != 0) & (ease[:, i] > 0) & (wanted >= self.least[:, i]) & (wanted <= self.most[:, i])
        before = self.values[:, i].copy()
        self.values[:, i] = np.where(fits, wanted, before)
        worse = fits & (self._missing(weights, low, high) != 0)
        self.values[worse, i] = before[worse]

    def encoded(self, freedom: Freedom, U: Array) -> Array:
        """The plans with these values; features that did not move keep every bit."""
        moved = changed(freedom.values(U), self.values)
        fresh = freedom.layout.encode(self.values)
        columns = [np.repeat(moved[:, [i]], b.width, axis=1) for i, b in enumerate(freedom.layout.features)]
        return np.where(np.concatenate(columns, axis=1), fresh, U)
