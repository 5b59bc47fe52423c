"""Several plans for each person on the model that decides: cheap, plausible, and different from each other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import joined, picked
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
_TURNS = 8
"""For each further plan: how often something else is left out, or held back."""
_HELD = (0.75, 0.5, 0.9)
"""Shares of the way that a plan goes in a number, which another is held to, so that something else has to help."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Plans in long form, each person's cheapest first: whose, the row, what it costs."""

    row: NDArray[np.intp]
    u: Array
    cost: Array

    @classmethod
    def joined(cls, parts: "list[Found]") -> "Found":
        """One after the other, then in order."""
        row, u, cost = (joined(*(getattr(part, name) for part in parts)) for name in ("row", "u", "cost"))
        return cls(*picked(np.lexsort((cost, row)), row, u, cost))


def search_plans(
    freedom: Freedom,
    judge: Judge,
    near: Neighbourhood,
    proposals: tuple[NDArray[np.intp], Array],
    k: int,
    taste: Taste,
    *,
    hard: bool = False,
) -> Found:
    """Up to k plans for each person, no two of a person with the same features changed.

    ``proposals`` are plans of another search (whose, and the rows), which are judged and trimmed as well. The first
    plan is the cheapest found. Each further one does without something that earlier ones lean on, or with less of it,
    and may begin from every person nearby. ``hard``: begin from every person nearby, and from single features as well.
    """
    beams = (2, 1) if k == 1 else (2 * k, 2 * k)
    people = _People(freedom, judge, near, taste, proposals, beams, hard)
    n_starts = len(near) if hard else _STARTS
    plans = _Collected.of(freedom, people.plans(np.arange(len(freedom)), freedom, n_starts))
    for turn in range(_TURNS * (k - 1)):
        who = plans.lacking(k)
        if not len(who) or judge.deadline.left() <= 0:
            break
        left, reach = plans.left_to(who, turn)
        plans = plans.with_more(people.plans(who, left, len(near), reach))
    return plans.cheapest(k)


@dataclass(frozen=True, slots=True, eq=False)
class _People:
    """Who asks, the model that decides, and what plans are measured by."""

    freedom: Freedom
    judge: Judge
    near: Neighbourhood
    taste: Taste
    proposals: tuple[NDArray[np.intp], Array]
    beams: tuple[int, int]
    hard: bool

    def plans(self, who: NDArray[np.intp], freedom: Freedom, n_starts: int, reach: Array | None = None) -> Found:
        """The best plans of some people within a freedom of their own.

        ``reach``: begin from these rows, one of each, and from single features as well.
        """
        near = self.near.people(who)
        place = np.full(len(self.freedom), -1)
        place[who] = np.arange(len(who))
        proposed = place[self.proposals[0]] >= 0
        starts = [near.starts(n_starts), (place[self.proposals[0][proposed]], self.proposals[1][proposed])]
        if reach is not None:
            starts.append((np.arange(len(who)), reach))
        if self.hard or reach is not None or self.taste.change >= 1.0:
            starts.append(_one_feature_alone(freedom, near.around.usual))
        person, candidates = (np.concatenate(parts) for parts in zip(*starts, strict=True))
        worth = Worth(freedom, near, self.taste)
        refined = refine(freedom, self.judge.of(who), worth, person, candidates, self.beams)
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

    def lacking(self, k: int) -> NDArray[np.intp]:
        """Who has plans, but fewer than k."""
        count = np.bincount(self.found.row, minlength=len(self.freedom))
        return np.flatnonzero((count > 0) & (count < k))

    def left_to(self, who: NDArray[np.intp], turn: int) -> tuple[Freedom, Array]:
        """What some people may do this time, without a feature of their plans so far or with less of it, and how far.

        Turns come in fours. They leave a feature of every plan alone, so that the next is unlike all of them; then of a
        single plan, which is easier to answer; then they go but a part of the way that every plan goes in one feature,
        so that it takes another as well; then of the way of a single plan, and leave those of the others alone, so that
        it takes one that has not been used. First it is the feature that a plan leans on most, then the second, and so
        on.
        """
        row, size = self.found.row, self.size
        cycle, kind = divmod(turn, 4)
        order = np.argsort(-size, axis=1, kind="stable")
        last = np.maximum((size > 0).sum(axis=1) - 1, 0)
        feature = order[np.arange(len(order)), np.minimum(cycle, last)]
        count = np.bincount(row, minlength=len(self.freedom))
        one = self._place() == cycle % count[row]
        people = self.freedom.rows(who)
        if kind < 2:
            return people.locked(self._marked(feature, one if kind == 1 else np.ones_like(one))[who]), people.x
        less = np.ones_like(one) if kind == 2 else one
        held, locked = self._marked(feature, less), self._marked(feature, ~less)
        reach = self._part_of_the_way(np.flatnonzero(less), feature, _HELD[cycle % len(_HELD)])[who]
        return people.held(held[who], reach).locked((locked & ~held)[who]), reach

    def _marked(self, feature: NDArray[np.intp], plans: Mask) -> Mask:
        """P x F: the features of some of the plans, one of each."""
        marked = np.zeros((len(self.freedom), self.size.shape[1]), dtype=np.bool_)
        marked[self.found.row[plans], feature[plans]] = True
        return marked

    def _part_of_the_way(self, plans: NDArray[np.intp], feature: NDArray[np.intp], share: float) -> Array:
        """P x D: where people are, but a share of the way further in the features of some plans, one of each."""
        reach = self.freedom.x.copy()
        starts = np.array([block.start for block in self.freedom.layout.features])
        # of two plans that go in the same feature the one that goes less far is the last to say so
        plans = plans[np.argsort(-self.size[plans, feature[plans]], kind="stable")]
        at = self.found.row[plans], starts[feature[plans]]
        reach[at] += share * (self.found.u[plans, at[1]] - self.freedom.x[at])
        return reach

    def cheapest(self, k: int) -> Found:
        """At most k plans of each person."""
        kept = self._place() < k
        return Found(self.found.row[kept], self.found.u[kept], self.found.cost[kept])
