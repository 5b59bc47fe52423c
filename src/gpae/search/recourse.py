"""Several plans for each person on the model that decides: cheap, plausible, and different from each other."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpae.clock import Deadline
from gpae.search.neighbourhood import Neighbourhood
from gpae.search.refine import Judge, refine
from gpae.table.constraint import Array, Mask
from gpae.table.freedom import Freedom

__all__ = ["TASTES", "Found", "Preference", "Taste", "search_plans"]

_STARTS = 16
"""Favourable people nearby from whom a search begins."""
_MORE_STARTS = 256
"""The same for further plans, which have to do without something."""
_TURNS = 3
"""For each further plan: how often something else is left out."""


@dataclass(frozen=True, slots=True)
class Taste:
    """What makes a plan dear, beside the way itself (half the squared distance in standard deviations)."""

    change: float = 0.3
    """Each feature that changes."""
    remoteness: float = 1.0
    """The squared distance to the nearest favourable people, in standard deviations."""


Preference = Literal["plausible", "near", "sparse"]
TASTES: dict[str, Taste] = {"plausible": Taste(), "near": Taste(0.0, 0.0), "sparse": Taste(3.0, 0.0)}
"""What people prefer, in words."""


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
) -> Found:
    """Up to k plans for each person, no two of a person with the same features changed.

    ``proposals`` are plans of another search (whose, and the rows), which are judged and trimmed as well. The first
    plan is the cheapest found. Each further one does without something that earlier ones lean on.
    """
    people = _People(freedom, judge, near, taste, proposals, deadline)
    everybody = np.arange(len(freedom))
    n_features = len(freedom.layout.features)
    plans = _Collected(n_features, k)
    plans.add(freedom, people.best(everybody, np.zeros((len(freedom), n_features), dtype=np.bool_)))
    for turn in range(_TURNS * (k - 1)):
        who, locks = plans.to_do_without(len(freedom), turn)
        if not len(who) or deadline.left() <= 0:
            break
        plans.add(freedom, people.best(who, locks, _MORE_STARTS))
    return plans.found()


@dataclass(frozen=True, slots=True, eq=False)
class _People:
    """Who asks, the model that decides, and what plans are measured by."""

    freedom: Freedom
    judge: Judge
    near: Neighbourhood
    taste: Taste
    proposals: tuple[NDArray[np.intp], Array]
    deadline: Deadline

    def best(self, who: NDArray[np.intp], locked: Mask, n_starts: int = _STARTS) -> Found:
        """The best plan of each of some people that leaves alone what is locked (n x F)."""
        freedom = self.freedom.rows(who).locked(locked)
        near = self.near.people(who)
        place = np.full(len(self.freedom), -1)
        place[who] = np.arange(len(who))
        proposed = place[self.proposals[0]] >= 0
        starts = near.starts(n_starts)
        person = np.concatenate([starts[0], place[self.proposals[0][proposed]]])
        candidates = np.concatenate([starts[1], self.proposals[1][proposed]])
        worth = partial(_cost, freedom, near, self.taste)
        refined = refine(freedom, self.judge.of(who), worth, person, candidates, self.deadline)
        there = np.flatnonzero(refined.valid)
        return Found(who[there], refined.u[there], refined.cost[there])


def _cost(freedom: Freedom, near: Neighbourhood, taste: Taste, person: NDArray[np.intp], U: Array) -> Array:
    """What plans cost: the way, the number of changes, and how far from favourable people they end."""
    x, layout = freedom.x[person], freedom.layout
    step = np.square((U - x) * near.scale.numpy())
    way = np.stack([step[:, block.columns].sum(axis=1) for block in layout.features], axis=1)
    cost = (0.5 * way + taste.change * layout.changed(U, x)) @ freedom.weights
    return np.asarray(cost + taste.remoteness * near.distance(person, U) ** 2 if taste.remoteness else cost)


class _Collected:
    """Each person's plans so far, with how far each feature moves in them."""

    def __init__(self, n_features: int, k: int) -> None:
        self.n_features = n_features
        self.k = k
        self.parts: list[Found] = []
        self.sizes: list[Array] = []
        """n x F: how far each feature of a plan moved; 0 where it did not."""

    def add(self, freedom: Freedom, found: Found) -> None:
        """Keep the plans that change other features than the person's earlier ones."""
        size = _sizes(freedom, found)
        new = np.ones(len(found.row), dtype=np.bool_)
        for part, earlier in zip(self.parts, self.sizes, strict=True):
            if len(part.row):
                at = np.minimum(np.searchsorted(part.row, found.row), len(part.row) - 1)
                new &= ~((part.row[at] == found.row) & ((earlier[at] > 0) == (size > 0)).all(axis=1))
        self.parts.append(Found(found.row[new], found.u[new], found.cost[new]))
        self.sizes.append(size[new])

    def to_do_without(self, n_people: int, turn: int) -> tuple[NDArray[np.intp], Mask]:
        """Who lacks plans, and what each is to leave alone this time.

        In even turns one feature of every plan so far, so that the next is unlike all of them; in odd ones, which are
        easier to answer, one of the last plan only. First it is the feature that a plan leans on most, then the second,
        and so on.
        """
        count, locks = np.zeros(n_people, dtype=np.intp), np.zeros((n_people, self.n_features), dtype=np.bool_)
        for part, size in zip(self.parts, self.sizes, strict=True):
            count[part.row] += 1
            order = np.argsort(-size, axis=1, kind="stable")
            last = np.maximum((size > 0).sum(axis=1) - 1, 0)
            feature = order[np.arange(len(order)), np.minimum(turn // 2, last)]
            if turn % 2:
                locks[part.row] = False
            locks[part.row, feature] = True
        who = np.flatnonzero((count > 0) & (count < self.k))
        return who, locks[who]

    def found(self) -> Found:
        """All plans, each person's cheapest first, at most k of each."""
        every = Found.joined(self.parts)
        place = np.arange(len(every.row)) - np.searchsorted(every.row, every.row)
        kept = place < self.k
        return Found(every.row[kept], every.u[kept], every.cost[kept])


def _sizes(freedom: Freedom, found: Found) -> Array:
    """n x F: the weighted square of how far each feature of plans moved; 0 where it did not change."""
    x, layout = freedom.x[found.row], freedom.layout
    step = np.square(found.u - x)
    size = np.stack([step[:, block.columns].sum(axis=1) for block in layout.features], axis=1)
    return np.where(layout.changed(found.u, x), np.maximum(size, 1e-12), 0.0)
