"""From people to verified plans: a method proposes, the model that decides disposes, and what cannot be is proved."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import joined, picked
from gpae.clock import NEVER, Deadline
from gpae.progress import report
from gpae.proofs.certificate import Certificate, Prove
from gpae.results import Counterfactuals, Status, left_out
from gpae.search.neighbourhood import Surroundings
from gpae.search.recourse import Found, search_plans
from gpae.search.refine import Count, Judge, Logits
from gpae.search.repair import snapped
from gpae.search.worth import Taste, Worth
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom

__all__ = ["Asked", "Outcome", "PlanFinder", "Plans", "Propose"]

Proposals = tuple[NDArray[np.intp], Array]
"""Plans of a guiding search: whose, and the rows."""
Propose = Callable[[Freedom, int], Proposals]
"""(people, seed) -> what it proposes."""
Refit = Callable[[Freedom, Array, Array], Proposals]
"""(people, what was proposed to each, what the model says of that) -> what is proposed by who knows that."""

_PRICED = 8192
"""Plans that are priced together at most: their neighbours are a large table."""
_TOGETHER = 2048
"""People who are searched for together at most,"""
_AT_FIRST = 16
"""and how many at first where there is a deadline: how long they take says how many come next."""
_SLOWLY = 0.02
"""Seconds that each of those may take where the model is slow: there are fewer where time is short."""
_LOOKED_AT_FIRST = 32
"""The same for a first look, which asks about one row of each."""
_NEIGHBOURS, _MORE_NEIGHBOURS, _MANY_NEIGHBOURS, _ALL_NEIGHBOURS = 64, 256, 1024, 2048
"""Favourable people nearby for one plan, for several, for who gets too few from those, and for who gets none."""
_PROOF_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a search."""

    k: int = 1
    seed: int = 0
    margin: float = 0.0
    """Logit units beyond the boundary that every plan must have."""
    survival: float | None = None
    """The share of retrained models that must favour every plan too."""
    taste: Taste = field(default_factory=Taste)
    deadline: Deadline = NEVER

    @property
    def is_plain(self) -> bool:
        """Whether it is no more than every method can do by itself."""
        return self.k == 1 and self.margin == 0.0 and self.survival is None and self.deadline.at is None


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How a search ended, for everybody: the plans, the proofs, and what else there is to say."""

    found: Counterfactuals
    certificates: dict[int, Certificate] = field(default_factory=dict)
    """By position, of those who are proved to have no plan."""
    reasons: dict[int, str] = field(default_factory=dict)
    """By position, of those without a plan of whom more can be said than their status does."""


@dataclass(slots=True, eq=False)
class Plans:
    """The plans found, in long form, and how each of the people ended."""

    found: list[Found]
    status: NDArray[np.str_]
    certificates: dict[int, Certificate] = field(default_factory=dict)
    """By position, of those who are proved to have no plan."""
    reasons: dict[int, str] = field(default_factory=dict)
    count: Count = field(default_factory=Count)

    def with_found(self, more: Found) -> "Plans":
        """These, and others for people who have none."""
        status = self.status.copy()
        status[more.row] = str(Status.FOUND)
        return replace(self, found=[*self.found, more], status=status)

    def outcome(self, freedom: Freedom) -> Outcome:
        """Everything in the form in which it is written down."""
        return Outcome(self.counterfactuals(freedom), self.certificates, self.reasons)

    def counterfactuals(self, freedom: Freedom) -> Counterfactuals:
        """One entry a plan, and one for each of the people without any."""
        found = Found.joined(self.found or [Found(np.zeros(0, dtype=np.intp), freedom.x[:0], np.zeros(0))])
        without = left_out(len(freedom), found.row)
        row, u = joined(found.row, without), joined(found.u, np.full((len(without), freedom.x.shape[1]), np.nan))
        cost = joined(found.cost, np.full(len(without), np.nan))
        row, u, cost = picked(np.argsort(row, kind="stable"), row, u, cost)
        (factual,) = picked(row, freedom.x)
        return Counterfactuals(
            row=row,
            plan=np.arange(len(row)) - np.searchsorted(row, row),
            factual=factual,
            counterfactual=u,
            target=np.ones(len(row), dtype=np.int64),
            found=~np.isnan(u).any(axis=1),
            status=self.status[row],
            cost=cost,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PlanFinder:
    """A guiding search, the model that decides, favourable people to begin from, and ways to prove that none is."""

    logits: Logits
    """What the model says that decides."""
    around: Surroundings
    """Rows that the model favours."""
    propose: Propose | None = None
    refit: Refit | None = None
    """For a guiding search that does not know the model itself."""
    provers: tuple[Prove, ...] = ()
    lasting: Logits | None = None
    """What plans must reach as well, where more is asked of them than the model's yes: never more than it says."""
    careful: Logits | None = None
    """What is aimed at first, where that should be surpassed: never more than it says."""

    @property
    def wanted(self) -> Logits:
        """What plans are judged by."""
        return self.lasting or self.logits

    def find(self, freedom: Freedom, asked: Asked, known: Plans | None = None) -> Plans:
        """Find plans for everybody, some people at a time, as long as there is time.

        ``known``: what is known already, from a first look on; only who has nothing is searched for.
        """
        plans = self.first_look(freedom, asked.deadline) if known is None else known
        todo = np.flatnonzero(plans.status == Status.NOT_FOUND)
        first = int(min(_AT_FIRST, asked.deadline.left() / _SLOWLY))
        for part in asked.deadline.portions(len(todo), first, _TOGETHER):
            self._some(freedom, todo[part], asked, plans)
            report("searching", part.stop / len(todo))
        without = todo[plans.status[todo] == Status.NOT_FOUND]
        for done, row in enumerate(without.tolist()):
            if not plans.count.has_time(asked.deadline):
                break
            report("proving", done / len(without))
            self._proved(freedom.rows(np.array([row])), row, asked, plans)
        if not plans.count.has_time(asked.deadline):
            plans.status[plans.status == Status.NOT_FOUND] = Status.TIMEOUT
        return plans

    def first_look(self, freedom: Freedom, deadline: Deadline = NEVER) -> Plans:
        """Who is favoured already, and who can become nothing else, as far as time allows."""
        n = len(freedom)
        plans, said = Plans([], np.full(n, str(Status.NOT_FOUND), dtype="<U18")), np.full(n, np.nan)
        for part in deadline.portions(n, _LOOKED_AT_FIRST, n):
            if not plans.count.has_time(deadline):
                break
            people = np.arange(n)[part]
            said[part] = plans.count.ask(self.logits, freedom, people, freedom.x[part])
        # bounds without room may lie elsewhere than the person, who then has to go there
        stuck = ((freedom.lower == freedom.upper) & (freedom.x == freedom.lower)).all(axis=1)
        for row in np.flatnonzero((freedom.hopeless | stuck) & (said <= 0)):
            ground = "no value left" if freedom.hopeless[row] else "nothing may change"
            best = -np.inf if freedom.hopeless[row] else float(said[row])
            plans.certificates[int(row)] = Certificate(ground, best)  # type: ignore[arg-type]
            plans.reasons[int(row)] = freedom.reasons[row] or "nothing of this row may change"
        plans.status[list(plans.certificates)] = Status.INFEASIBLE
        plans.status[said > 0] = Status.ALREADY_FAVOURABLE
        plans.status[np.isnan(said)] = Status.TIMEOUT
        return plans

    def priced(self, freedom: Freedom, others: Counterfactuals, taste: Taste) -> Found:
        """What a method has found by itself, and what that costs by the measure of this search."""
        row, u = picked(np.flatnonzero(others.found), others.row.astype(np.intp), others.counterfactual)
        cost = np.zeros(len(row))
        for part in NEVER.portions(len(row), _PRICED, _PRICED):
            people = freedom.rows(row[part])
            near = self.around.near(people.x, _NEIGHBOURS)
            cost[part], _ = Worth(people, near, taste).of(np.arange(len(people)), u[part])
        return Found(row, u, cost)

    def glance(self, freedom: Freedom, asked: Asked) -> Found:
        """One plan for each of some people, from the people nearby and single features; without any proof."""
        asked = replace(asked, k=1)
        return self._searched(freedom, asked, Count(), _NEIGHBOURS, _nothing(freedom), hard=True, careful=False)

    def _some(self, freedom: Freedom, who: NDArray[np.intp], asked: Asked, plans: Plans) -> None:
        """Search for some of the people, and harder for those who get nothing."""
        part = freedom.rows(who)
        neighbours = _NEIGHBOURS if asked.k == 1 else _MORE_NEIGHBOURS
        found = self._searched(part, asked, plans.count, neighbours, self._proposals(part, asked, plans.count))
        missing = left_out(len(who), found.row)
        if len(missing) and plans.count.has_time(asked.deadline):
            again = self._searched(
                part.rows(missing), asked, plans.count, _ALL_NEIGHBOURS, _nothing(part), hard=True, careful=False
            )
            found = Found.joined([found, Found(missing[again.row], again.u, again.cost)])
        n_plans = np.bincount(found.row, minlength=len(who))
        few = np.flatnonzero((n_plans > 0) & (n_plans < asked.k))
        if len(few) and plans.count.has_time(asked.deadline):
            again = self._searched(part.rows(few), asked, plans.count, _MANY_NEIGHBOURS, _nothing(part))
            found = _with_more(found, Found(few[again.row], again.u, again.cost), len(who))
        sure = part.rows(found.row).permits(found.u)
        found = Found(found.row[sure], found.u[sure], found.cost[sure])
        plans.found.append(Found(who[found.row], found.u, found.cost))
        plans.status[who[found.row]] = Status.FOUND
        if not plans.count.has_time(asked.deadline) and asked.k > 1:
            n_plans = np.bincount(found.row, minlength=len(who))
            plans.status[who[(n_plans > 0) & (n_plans < asked.k)]] = Status.TIMEOUT

    def _proposals(self, part: Freedom, asked: Asked, count: Count) -> Proposals:
        """What the guiding search proposes; where the model refuses that, also what it proposes once it knows."""
        if self.propose is None:
            return _nothing(part)
        row, u = self.propose(part, asked.seed)
        if self.refit is None or not len(row) or not count.has_time(asked.deadline):
            return row, u
        u = snapped(part.rows(row), u)
        said = count.ask(self.wanted, part, row, u)
        wrong = np.flatnonzero(said <= asked.margin)
        if not len(wrong) or asked.deadline.left() <= 0:
            return row, u
        more, v = self.refit(part.rows(row[wrong]), u[wrong], said[wrong])
        return np.concatenate([row, row[wrong][more]]), np.concatenate([u, v])

    def _searched(
        self,
        part: Freedom,
        asked: Asked,
        count: Count,
        n_neighbours: int,
        proposals: Proposals,
        hard: bool = False,
        careful: bool = True,
    ) -> Found:
        wanted = self.careful if careful and self.careful is not None else self.wanted
        near = self.around.near(part.x, n_neighbours)
        judge = Judge(wanted, np.ones(len(part)), np.full(len(part), asked.margin), count, asked.deadline)
        return search_plans(part, judge, near, proposals, asked.k, asked.taste, hard=hard)

    def _proved(self, person: Freedom, row: int, asked: Asked, plans: Plans) -> None:
        """Look for a proof that a person has no plan; a prover may find a plan instead."""
        for prove in self.provers:
            left = min(asked.deadline.left(), _PROOF_SECONDS)
            if left <= 0:
                break
            certificate, u = prove(person, left, asked.margin)
            if certificate is not None:
                plans.certificates[row], plans.status[row] = certificate, str(Status.INFEASIBLE)
                return
            if u is not None:
                proposed = np.zeros(1, dtype=np.intp), u
                asked = replace(asked, k=1)
                found = self._searched(person, asked, plans.count, _NEIGHBOURS, proposed, careful=False)
                if len(found.row) and person.permits(found.u)[0]:
                    plans.found.append(Found(np.array([row]), found.u[:1], found.cost[:1]))
                    plans.status[row] = Status.FOUND
                    return


def _with_more(found: Found, again: Found, n: int) -> Found:
    """Of n people the plans of a second search for those for whom it found more, and of the first for all others."""
    more = np.bincount(again.row, minlength=n) > np.bincount(found.row, minlength=n)
    first, second = ~more[found.row], more[again.row]
    return Found.joined(
        [Found(one.row[kept], one.u[kept], one.cost[kept]) for one, kept in ((found, first), (again, second))]
    )


def _nothing(people: Freedom) -> Proposals:
    return np.zeros(0, dtype=np.intp), people.x[:0]
