"""Plans on the model itself: candidates are judged by it, and what a plan does not need is taken back.

A search that guides (a surrogate's, or favourable people nearby) proposes; the model that decides disposes. It is only
ever asked about whole batches of rows that a person could become, and every question is counted. From the best
proposals on, features are given back one by one and several at once, and numbers are moved towards the person, as
long as the model still says yes and the plan gets cheaper. In the end every change that a plan can do without is taken
back, also where the plan was more like others with it: nobody is to be told of a change that is not needed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpae.clock import NEVER, Deadline
from gpae.search.repair import repaired
from gpae.search.worth import Worth
from gpae.table.constraint import Array, Mask
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout

__all__ = ["Count", "Judge", "Logits", "Refined", "refine"]

Logits = Callable[[Freedom, NDArray[np.intp], Array], Array]
"""(people, whose plan each is, the plans) -> the logit of the favourable class."""

_CHEAPER = 1e-9
_LINE = (0.2, 0.4, 0.6, 0.8)
"""Shares of the way from the person to the plan that are tried for all features together,"""
_ALONE = (0.0, 0.35, 0.7)
"""and for each number alone."""
_FURTHER = (1.0, 1.5, 2.5)
"""How much further the other numbers go where a feature is given back for them."""
_COORDINATE_ROUNDS = 4
_NUMBERS, _FEW_NUMBERS = 1_500_000, 20_000
"""In candidates that are judged together, and in the first of them where there is a deadline to keep. Larger arrays
are given back to the system each time, which takes longer than what is done with them."""
_FEW_ROWS, _ANY = 100, 1e9
"""Rows that a model of unknown speed is asked about first where there is a deadline, and where there is none."""


@dataclass(slots=True)
class Count:
    """How often a model was asked, about how many rows, and how long it took to answer."""

    calls: int = 0
    rows: int = 0
    seconds: float = 0.0
    shortest: float = 0.0
    """Of the times that single calls took: what one takes, however few rows it is about."""

    def ask(self, logits: Logits, freedom: Freedom, person: NDArray[np.intp], U: Array) -> Array:
        """Ask once, and count it."""
        begun = time.monotonic()
        said = logits(freedom, person, U)
        took = time.monotonic() - begun
        self.shortest = min(took, self.shortest) if self.calls else took
        self.calls, self.rows, self.seconds = self.calls + 1, self.rows + len(U), self.seconds + took
        return said

    def has_time(self, deadline: Deadline) -> bool:
        """Whether there is time for one more call, and for the last one, which judges plans as they are written."""
        return deadline.left() > 2.0 * self.shortest

    def rows_within(self, seconds: float) -> int:
        """About so many rows are answered in that time; of a model that was not asked yet a few."""
        if not self.rows:
            return _FEW_ROWS
        return max(int(min(seconds * self.rows / max(self.seconds, 1e-9), _ANY)), 1)


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """The model that decides, asked in batches about plans of people with their own targets.

    A plan is valid if its logit lies beyond ``margin`` on its target's side.
    """

    logits: Logits
    sign: Array
    """P: 1 where the favourable class is wanted, -1 where the other."""
    margin: Array
    """P."""
    count: Count = field(default_factory=Count)
    deadline: Deadline = NEVER

    def of(self, people: NDArray[np.intp]) -> "Judge":
        """The same model for some of the people; what it is asked is counted together."""
        return replace(self, sign=self.sign[people], margin=self.margin[people])

    def at_once(self) -> int:
        """Rows that may be asked about together, so that the deadline is not missed by waiting for an answer."""
        return self.count.rows_within(self.deadline.left() / 4)

    def accepts(self, freedom: Freedom, person: NDArray[np.intp], U: Array) -> Mask:
        """Which plans the model decides as wanted; what there is no time to ask about is not accepted."""
        good = np.zeros(len(U), dtype=np.bool_)
        for part in self.deadline.portions(len(U), self.at_once(), len(U)):
            if not self.count.has_time(self.deadline):
                break
            said = self.count.ask(self.logits, freedom, person[part], U[part])
            good[part] = self.sign[person[part]] * said > self.margin[person[part]]
        return good


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """Plans that the model accepts, several a person allowed: whose, the rows, what they cost."""

    person: NDArray[np.intp]
    u: Array
    cost: Array


def refine(
    freedom: Freedom,
    judge: Judge,
    worth: Worth,
    person: NDArray[np.intp],
    candidates: Array,
    beams: tuple[int, int] = (2, 1),
) -> Refined:
    """Judge candidates, one line each, of the people at ``person``; keep the cheapest of each person and trim them.

    ``beams``: so many of each person's are trimmed roughly, and so many of these finely. Trimming stops where time is
    over; what is valid by then is returned.
    """
    plans = _Plans.accepted(freedom, judge, worth, person, candidates)
    for beam, trimming in zip(beams, (_ROUGHLY, _FINELY), strict=True):
        plans = plans.cheapest(beam)
        for trim in trimming:
            if not judge.count.has_time(judge.deadline) or not len(plans.person):
                break
            plans = trim(plans)
    return Refined(plans.person, plans.u, plans.cost)


@dataclass(frozen=True, slots=True, eq=False)
class _Plans:
    """Plans that the model accepts, several a person allowed, and what it takes to improve on them."""

    freedom: Freedom
    judge: Judge
    worth: Worth
    person: NDArray[np.intp]
    u: Array
    cost: Array
    far: Array
    alive: Mask
    """Which may still get better number by number: those that did so last time, or have changed since."""

    @classmethod
    def accepted(
        cls,
        freedom: Freedom,
        judge: Judge,
        worth: Worth,
        person: NDArray[np.intp],
        candidates: Array,
    ) -> "_Plans":
        """Those of the candidates that are allowed, or can be made so, and that the model accepts; as time allows."""
        first, most = (numbers // candidates.shape[1] + 1 for numbers in (_FEW_NUMBERS, _NUMBERS))
        parts = judge.deadline.portions(len(person), min(first, judge.at_once()), most)
        judged = (_judged_candidates(freedom, judge, person[part], candidates[part]) for part in parts)
        nothing = person[:0], candidates[:0]
        person, u = (np.concatenate(each) for each in zip(nothing, *judged, strict=True))
        cost, far = worth.of(person, u)
        return cls(freedom, judge, worth, person, u, cost, far, np.ones(len(u), dtype=np.bool_))

    def cheapest(self, n: int) -> "_Plans":
        """The n cheapest of each person."""
        order = np.lexsort((self.cost, self.person))
        person = self.person[order]
        place = np.arange(len(order)) - np.searchsorted(person, person)
        at = order[place < n]
        person, alive = self.person[at], self.alive[at]
        return replace(self, person=person, u=self.u[at], cost=self.cost[at], far=self.far[at], alive=alive)

    def without_what_is_not_needed(self) -> "_Plans":
        """Give features back: each alone first, then as many as can be given back together, the dearest first."""
        changed = self._changed()
        n_features = len(self.freedom.layout.features)
        plan, feature = np.nonzero(changed)
        alone = np.zeros((len(changed), n_features))
        trials = self._given_back(plan, np.arange(n_features) == feature[:, None])
        cost, _, good = self._judged(plan, *trials)
        alone[plan, feature] = np.where(good, self.cost[plan] - cost, 0.0)
        order = np.argsort(-alone, axis=1, kind="stable")
        most = int((alone > 0).sum(axis=1).max(initial=0))
        plans, sets = [], []
        for n in range(1, most + 1):
            enough = np.flatnonzero((alone > 0).sum(axis=1) >= n)
            together = np.zeros((len(enough), n_features), dtype=np.bool_)
            np.put_along_axis(together, order[enough, :n], True, axis=1)
            plans.append(enough)
            sets.append(together)
        if not plans:
            return self
        index = np.concatenate(plans)
        return self._improved(index, *self._given_back(index, np.concatenate(sets)))

    def with_needed_changes_only(self) -> "_Plans":
        """Give features back until each that is left is needed, the one without which a plan is cheapest first."""
        plans, open_ = self, np.ones(len(self.u), dtype=np.bool_)
        while open_.any():
            before = plans._changed()
            plan, feature = np.nonzero(before & open_[:, None] & (before.sum(axis=1, keepdims=True) > 1))
            trials, back = plans._given_back(plan, np.arange(before.shape[1]) == feature[:, None])
            person = plans.person[plan]
            trials, good = repaired(plans.freedom.rows(person), trials, back)
            after = plans.freedom.layout.changed(trials, plans.freedom.x[person])
            good &= ~(after & ~before[plan]).any(axis=1) & (after.sum(axis=1) < before[plan].sum(axis=1))
            good[good] = plans.judge.accepts(plans.freedom, person[good], trials[good])
            at = np.flatnonzero(good)
            cost, far = plans.worth.of(person[at], trials[at])
            open_ = np.zeros_like(open_)
            open_[plan[at]] = True
            plans = plans._replaced(plan[at], trials[at], cost, far)
        return plans

    def towards_the_person(self) -> "_Plans":
        """Move all numbers together towards the person."""
        numbers = ~self.freedom.layout.discrete
        index = np.repeat(np.arange(len(self.u)), len(_LINE))
        share = np.tile(_LINE, len(self.u))[:, None]
        x, u = self.freedom.x[self.person[index]], self.u[index]
        return self._improved(index, np.where(numbers, x + share * (u - x), u), None)

    def exchanged(self) -> "_Plans":
        """Give one feature back and let the other numbers make up for it."""
        changed = self._changed()
        plan, feature = np.nonzero(changed & (changed.sum(axis=1, keepdims=True) > 1))
        plan, feature = np.repeat(plan, len(_FURTHER)), np.repeat(feature, len(_FURTHER))
        further = np.tile(_FURTHER, len(plan) // len(_FURTHER))[:, None]
        back = np.arange(changed.shape[-1]) == feature[:, None]
        x, u = self.freedom.x[self.person[plan]], self.u[plan]
        moved = np.where(self.freedom.layout.discrete, u, x + further * (u - x))
        return self._improved(plan, np.where(_columns(self.freedom.layout, back), x, moved), back)

    def number_by_number(self) -> "_Plans":
        """Move one number of each plan towards the person."""
        layout = self.freedom.layout
        numeric = np.array([block.kind in ("continuous", "integer", "ordinal") for block in layout.features])
        plan, feature = np.nonzero(self._changed() & numeric & self.alive[:, None])
        plan, feature = np.repeat(plan, len(_ALONE)), np.repeat(feature, len(_ALONE))
        share = np.tile(_ALONE, len(plan) // len(_ALONE))
        moved = np.arange(len(layout.features)) == feature[:, None]
        columns = _columns(layout, moved)
        x, u = self.freedom.x[self.person[plan]], self.u[plan]
        at_rest = replace(self, alive=np.zeros(len(self.u), dtype=np.bool_))
        return at_rest._improved(plan, np.where(columns, x + share[:, None] * (u - x), u), moved)

    def _changed(self) -> Mask:
        return self.freedom.layout.changed(self.u, self.freedom.x[self.person])

    def _given_back(self, plan: NDArray[np.intp], which: Mask) -> tuple[Array, Mask]:
        """The plans with some features (n x F) as the person has them, and those features, which are to stay so."""
        x = self.freedom.x[self.person[plan]]
        return np.where(_columns(self.freedom.layout, which), x, self.u[plan]), which

    def _judged(self, plan: NDArray[np.intp], trials: Array, kept: Mask | None) -> tuple[Array, Array, Mask]:
        """What trials cost, how far they end, and which are allowed, cheaper than their plan and accepted.

        ``trials`` is brought to allowed values. What cannot be cheaper is left alone before anything is asked of it.
        """
        person, enough = self.person[plan], self.cost[plan] - _CHEAPER
        trials[:], good = repaired(self.freedom.rows(person), trials, kept)
        cost, far = self.worth.way(person, trials), np.zeros(len(plan))
        if self.worth.remoteness:
            least = np.maximum(self.far[plan] - self.worth.apart(trials, self.u[plan]), 0.0)
            good &= cost + self.worth.remoteness * least**2 < enough
            far[good] = self.worth.far(person[good], trials[good])
            cost += self.worth.remoteness * far**2
        good &= cost < enough
        good[good] = self.judge.accepts(self.freedom, person[good], trials[good])
        return cost, far, good

    def _improved(self, plan: NDArray[np.intp], trials: Array, kept: Mask | None) -> "_Plans":
        """Each plan replaced by its cheapest good trial, if it has one."""
        cost, far, good = self._judged(plan, trials, kept)
        return self._replaced(plan[good], trials[good], cost[good], far[good])

    def _replaced(self, plan: NDArray[np.intp], trials: Array, cost: Array, far: Array) -> "_Plans":
        """Some plans replaced by the cheapest of their trials."""
        order = np.lexsort((cost, plan))
        first = order[np.unique(plan[order], return_index=True)[1]]
        u, costs, fars, alive = self.u.copy(), self.cost.copy(), self.far.copy(), self.alive.copy()
        better = plan[first]
        u[better], costs[better], fars[better], alive[better] = trials[first], cost[first], far[first], True
        return replace(self, u=u, cost=costs, far=fars, alive=alive)


_ROUGHLY: tuple[Callable[[_Plans], _Plans], ...] = (
    _Plans.without_what_is_not_needed,
    _Plans.towards_the_person,
)
_FINELY: tuple[Callable[[_Plans], _Plans], ...] = (
    *[_Plans.number_by_number] * _COORDINATE_ROUNDS,
    _Plans.exchanged,
    _Plans.number_by_number,
    _Plans.with_needed_changes_only,
)


def _judged_candidates(
    freedom: Freedom, judge: Judge, person: NDArray[np.intp], candidates: Array
) -> tuple[NDArray[np.intp], Array]:
    """Those that are allowed, or can be made so, and that the model accepts."""
    u, allowed = repaired(freedom.rows(person), candidates)
    person, u = person[allowed], u[allowed]
    good = judge.accepts(freedom, person, u)
    return person[good], u[good]


def _columns(layout: Layout, features: Mask) -> Mask:
    """The encoded columns (n x D) of features (n x F)."""
    return np.repeat(features, [block.width for block in layout.features], axis=1)
