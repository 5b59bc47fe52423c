"""Several plans for each person on the model that decides: cheap, plausible, and different from each other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.clock import Deadline
from gpae.search.neighbourhood import Neighbourhood
from gpae.search.refine import Judge, refine
from gpae.search.worth import Taste, Worth
from gpae.table.constraint import Array, Mask
from gpae.table.freedom import Freedom
from gpae.table.level_block import LevelBlock
from gpae.table.value_block import ValueBlock

__all__ = ["Found", "search_plans"]

_STARTS = 12
"""Favourable people nearby from whom a search begins."""
_SHARES = (0.1, 0.4, 1.0)
"""Of the way from a person's number to a bound, where it is tried alone."""
_LEVELS = 8
"""Of a feature, the most common ones, that are tried alone."""
_MORE_STARTS = 256
"""The same for further plans, which have to do without something."""
_TURNS = 4
"""For each further plan: how often something else is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Plans in long form, each person's cheapest first: whose, the row, what it costs."""

    row: NDArray[np.intp]
    u: Array
    cost: Array

    @classmethod
    def joined(cls, parts: "list[Found]") -> "Found":
        """One after the other, then in order."""
        row, u, cost = (np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "u", "cost"))
        order = np.lexsort((cost, row))
        return cls(row[order], u[order], cost[order])


def search_plans(
    freedom: Freedom,
    judge: Judge,
    near: Neighbourhood,
    proposals: tuple[NDArray[np.intp], Array],
    k: int,
    taste: Taste,
    deadline: Deadline,
    *,
    hard: bool = False,
) -> Found:
    """Up to k plans for each person, no two of a person with the same features changed.

    ``proposals`` are plans of another search (whose, and the rows), which are judged and trimmed as well. The first
    plan is the cheapest found. Each further one does without something that earlier ones lean on. ``hard``: begin from
    every person nearby, and from single features as well.
    """
    beams = (2, 1) if k == 1 else (2 * k, 2 * k)
    people = _People(freedom, judge, near, taste, proposals, deadline, beams, hard)
    nothing = np.zeros((len(freedom), len(freedom.layout.features)), dtype=np.bool_)
    n_starts = near.rows.shape[1] if hard else _STARTS
    plans = _Collected.of(freedom, people.plans(np.arange(len(freedom)), nothing, n_starts))
    for turn in range(_TURNS * (k - 1)):
        who, locks = plans.to_do_without(k, turn)
        if not len(who) or deadline.left() <= 0:
            break
        plans = plans.with_more(people.plans(who, locks, _MORE_STARTS))
    return plans.cheapest(k)


@dataclass(frozen=True, slots=True, eq=False)
class _People:
    """Who asks, the model that decides, and what plans are measured by."""

    freedom: Freedom
    judge: Judge
    near: Neighbourhood
    taste: Taste
    proposals: tuple[NDArray[np.intp], Array]
    deadline: Deadline
    beams: tuple[int, int]
    hard: bool

    def plans(self, who: NDArray[np.intp], locked: Mask, n_starts: int) -> Found:
        """The best plans of some people that leave alone what is locked (n x F)."""
        freedom = self.freedom.rows(who).locked(locked)
        near = self.near.people(who)
        place = np.full(len(self.freedom), -1)
        place[who] = np.arange(len(who))
        proposed = place[self.proposals[0]] >= 0
        starts = [near.starts(n_starts), (place[self.proposals[0][proposed]], self.proposals[1][proposed])]
        if self.hard or self.taste.change >= 1.0 or locked.any():
            starts.append(_one_feature_alone(freedom, near.usual))
        person, candidates = (np.concatenate(parts) for parts in zip(*starts, strict=True))
        worth = Worth(freedom, near, self.taste)
        refined = refine(freedom, self.judge.of(who), worth, person, candidates, self.deadline, self.beams)
        return Found(who[refined.person], refined.u, refined.cost)


def _one_feature_alone(freedom: Freedom, usual: Array) -> tuple[NDArray[np.intp], Array]:
    """Plans that change a single feature: a number some way towards either of its bounds, a level to a common one.

    ``usual`` (D) says how common levels are.
    """
    people, trials = [], []
    for block in freedom.layout.features:
        own, lower, upper = (part[:, block.columns] for part in (freedom.x, freedom.lower, freedom.upper))
        if isinstance(block, ValueBlock) and block.kind in ("continuous", "integer"):
            settings = [own + share * (end - own) for end in (lower, upper) for share in _SHARES]
        else:
            ranks = (
                _common(usual[block.columns]) if isinstance(block, LevelBlock) else range(int(block.grid.maximum) + 1)
            )
            settings = [np.broadcast_to(block.encode(np.array([float(rank)])), own.shape) for rank in ranks]
        free = np.flatnonzero((lower < upper).any(axis=1))
        for setting in settings:
            trial = freedom.x[free].copy()
            trial[:, block.columns] = setting[free]
            people.append(free)
            trials.append(trial)
    return np.concatenate(people), np.concatenate(trials)


def _common(shares: Array) -> NDArray[np.intp]:
    """The most common of a feature's levels."""
    return np.argsort(-shares, kind="stable")[:_LEVELS]


@dataclass(frozen=True, slots=True, eq=False)
class _Collected:
    """Plans so far, the cheapest for each set of features that a person may change, in order of people and cost."""

    freedom: Freedom
    found: Found
    size: Array
    """n x F: the square of how far each feature of a plan moved; 0 where it did not change."""

    @classmethod
    def of(cls, freedom: Freedom, found: Found) -> "_Collected":
        """Keep the cheapest of the plans that change the same features of a person."""
        x, layout = freedom.x[found.row], freedom.layout
        step = np.square(found.u - x)
        moved = np.stack([step[:, block.columns].sum(axis=1) for block in layout.features], axis=1)
        changed = layout.changed(found.u, x)
        order = np.lexsort((found.cost, found.row))
        key = np.column_stack([found.row, np.packbits(changed, axis=1)])[order]
        first = np.sort(np.unique(key, axis=0, return_index=True)[1])
        kept = order[first]
        size = np.where(changed, np.maximum(moved, 1e-12), 0.0)
        return cls(freedom, Found(found.row[kept], found.u[kept], found.cost[kept]), size[kept])

    def with_more(self, found: Found) -> "_Collected":
        """These plans and others."""
        return self.of(self.freedom, Found.joined([self.found, found]))

    def _place(self) -> NDArray[np.intp]:
        """Which of its person's plans each is, the cheapest being 0."""
        row = self.found.row
        return np.arange(len(row)) - np.searchsorted(row, row)

    def to_do_without(self, k: int, turn: int) -> tuple[NDArray[np.intp], Mask]:
        """Who lacks plans, and what each is to leave alone this time.

        In even turns one feature of every plan so far, so that the next is unlike all of them; in odd ones, which are
        easier to answer, one of a single plan. First it is the feature that a plan leans on most, then the second, and
        so on.
        """
        row, size = self.found.row, self.size
        count = np.bincount(row, minlength=len(self.freedom))
        order = np.argsort(-size, axis=1, kind="stable")
        last = np.maximum((size > 0).sum(axis=1) - 1, 0)
        feature = order[np.arange(len(order)), np.minimum(turn // 2, last)]
        meant = np.ones(len(row), dtype=np.bool_) if turn % 2 == 0 else self._place() == (turn // 2) % count[row]
        locks = np.zeros((len(self.freedom), size.shape[1]), dtype=np.bool_)
        locks[row[meant], feature[meant]] = True
        who = np.flatnonzero((count > 0) & (count < k))
        return who, locks[who]

    def cheapest(self, k: int) -> Found:
        """At most k plans of each person."""
        kept = self._place() < k
        return Found(self.found.row[kept], self.found.u[kept], self.found.cost[kept])
