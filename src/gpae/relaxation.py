"""For people without a plan: which rule stands in the way, and what would be enough without it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpae.plan_finder import Asked, Outcome, PlanFinder
from gpae.results import Status
from gpae.table.change import Change, forbidden
from gpae.table.constraint import Array, Constraint, Mask
from gpae.table.constraints.cost import Cost
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Schema
from gpae.words import plan_in_words

__all__ = ["Question", "explained_refusals"]

_TOLD = 3
"""Ways out that a person is told of, the cheapest first."""
_AT_FIRST = 8
"""People who are looked at together at first where there is a deadline."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is asked, beside the people: an encoding, and everything that plans must obey."""

    layout: Layout
    schema: Schema
    rules: Sequence[Constraint]
    """Of the call; those of the schema come on top."""
    fixed: Mask
    """F: features that the call keeps."""

    def freedom(self, rows: Array, values: Array) -> Freedom:
        """What people may become, given encoded and as they were read."""
        return Freedom.of(self.layout, self.schema, self.rules, rows, own=values, fixed=self.fixed)

    def of_rows(self, who: NDArray[np.intp]) -> "Question":
        """The same for some of the people."""
        own = tuple(rule.of_rows(who) for rule in self.schema.constraints)
        schema = self.schema.model_copy(update={"constraints": own})
        return replace(self, schema=schema, rules=tuple(rule.of_rows(who) for rule in self.rules))

    def without_one(self) -> Iterator[tuple[str, "Question"]]:
        """Each thing that stands in the way, in words, and the question without it."""
        for i, feature in enumerate(self.schema.features):
            words = forbidden(feature.name, Change.fixed if self.fixed[i] else feature.change)
            if words:
                yield words, self._with_free(i)
        for rule in (*self.schema.constraints, *self.rules):
            if not isinstance(rule, Cost):
                yield rule.words(), self._without(rule)

    def without_all(self) -> "Question":
        """Nothing is forbidden but what no row of the data has."""
        free = self
        for i in range(len(self.schema.features)):
            free = free._with_free(i)
        return replace(free, schema=free.schema.model_copy(update={"constraints": ()}), rules=())

    def _with_free(self, i: int) -> "Question":
        features = list(self.schema.features)
        features[i] = features[i].model_copy(update={"change": Change.any})
        fixed = self.fixed.copy()
        fixed[i] = False
        return replace(self, schema=self.schema.model_copy(update={"features": tuple(features)}), fixed=fixed)

    def _without(self, rule: Constraint) -> "Question":
        kept = tuple(one for one in self.schema.constraints if one is not rule)
        schema = self.schema.model_copy(update={"constraints": kept})
        return replace(self, schema=schema, rules=tuple(one for one in self.rules if one is not rule))


def explained_refusals(
    question: Question, freedom: Freedom, finder: PlanFinder, outcome: Outcome, asked: Asked
) -> Outcome:
    """Tell everybody without a plan, proved or not, what could be relaxed, as long as there is time.

    ``freedom`` is what the question leaves the people.
    """
    without = np.isin(outcome.found.status, [Status.INFEASIBLE, Status.NOT_FOUND])
    who = np.unique(outcome.found.row[without]).astype(np.intp)
    if not len(who):
        return outcome
    ways = _Ways(finder, asked, freedom.x[who], freedom.own[who], [[] for _ in who])
    for words, relaxed in question.of_rows(who).without_one():
        ways.look(f"without the rule {words!r}", relaxed, np.arange(len(who)))
    missing = np.flatnonzero([not told for told in ways.told])
    if len(missing):
        ways.look("without any rule", question.without_all(), missing)
    reasons, in_time = dict(outcome.reasons), asked.deadline.left() > 0
    for at, row in enumerate(who):
        reasons[int(row)] = _reason(_known(outcome, int(row)), ways.told[at], in_time)
    return replace(outcome, reasons=reasons)


@dataclass(frozen=True, slots=True, eq=False)
class _Ways:
    """Some people, and for each of them what was found without one of the rules: cost, rule, plan in words."""

    finder: PlanFinder
    asked: Asked
    rows: Array
    values: Array
    told: list[list[tuple[float, str, str]]]

    def look(self, words: str, relaxed: Question, who: NDArray[np.intp]) -> None:
        """Look for plans of some of them under a relaxed question."""
        freedom = relaxed.freedom(self.rows[who], self.values[who])
        for part in self.asked.deadline.portions(len(who), _AT_FIRST, len(who)):
            self._look(words, freedom.rows(np.arange(len(who))[part]), who[part])

    def _look(self, words: str, freedom: Freedom, who: NDArray[np.intp]) -> None:
        found = self.finder.glance(freedom, self.asked)
        _, first = np.unique(found.row, return_index=True)
        plans = freedom.values(found.u[first], found.row[first])
        for row, cost, plan in zip(found.row[first], found.cost[first], plans, strict=True):
            enough = plan_in_words(freedom.schema.features, freedom.own[row], plan)
            self.told[int(who[row])].append((float(cost), words, enough))


def _known(outcome: Outcome, row: int) -> str:
    """What is known of a person before any rule is left out."""
    proof = outcome.certificates.get(row)
    if proof is None:
        return "no allowed change that is enough was found"
    nothing = "no row obeys all the rules together" if np.isneginf(proof.best) else "no allowed change is enough"
    return outcome.reasons.get(row) or nothing


def _reason(known: str, ways: list[tuple[float, str, str]], in_time: bool) -> str:
    if not ways:
        return f"{known}, and none was found without the rules either" if in_time else known
    cheapest = sorted(ways)[:_TOLD]
    told = " Or ".join(f"{without} this would be enough: {plan}" for _, without, plan in cheapest)
    return f"{known}; {told}"
