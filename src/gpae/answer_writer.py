"""From encoded counterfactuals to an answer in the user's units, every plan judged as it is written."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpae.answer import OWN_COLUMNS, Answer
from gpae.arrays import Mask, is_everyone, joined, picked, placed
from gpae.learnt import Learnt
from gpae.models.given_model import logit_of
from gpae.plan_finder import Asked, Outcome
from gpae.results import Counterfactuals, Status
from gpae.table.codec import Encoded
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom
from gpae.written_plans import Judged, WrittenPlans

__all__ = ["AnswerWriter"]

_FIRST = 4
"""Of our columns, those before the features."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerWriter:
    """What it takes to write plans down and to judge them."""

    learnt: Learnt
    prefix: str
    asked: Asked

    def write(
        self, table: pa.Table, encoded: Encoded, good: NDArray[np.intp], freedom: Freedom, outcome: Outcome
    ) -> Answer:
        """Write the plans found for the good rows of a table; the bad rows are answered with their reason.

        ``freedom`` and ``outcome`` are those of the good rows.
        """
        found = _with_bad_rows(outcome.found, good, encoded)
        place = np.searchsorted(good, found.row)
        place[encoded.bad[found.row]] = -1
        origin = _lines(table, found.row)
        features, judged = self._written(origin, found, freedom, place)
        plans = WrittenPlans(
            self.learnt, self.asked, origin, features, found, judged, freedom, place, outcome, encoded.reasons
        )
        own = {self.prefix + name: column for name, column in plans.figures().items()}
        names = [self.prefix + name for name in OWN_COLUMNS]
        columns = {name: own[name] for name in names[:_FIRST]}
        columns |= dict(zip(features.column_names, features.columns, strict=True))
        columns |= {name: own[name] for name in names[_FIRST:]}
        return Answer(pa.table(columns), plans, "pyarrow", self.prefix)

    def _written(
        self, origin: pa.Table, found: Counterfactuals, freedom: Freedom, place: NDArray[np.intp]
    ) -> tuple[pa.Table, Judged]:
        """Write the plans and judge them; what is not sound as it stands is left empty.

        Columns have the types of the training table, unless single precision is too coarse for some plan's rules.
        """
        at = np.flatnonzero(found.found)
        u, who = picked(at, found.counterfactual, place)
        values = placed(len(found), at, freedom.values(u, who))

        def write(kept: Mask, wide: bool) -> pa.Table:
            return self.learnt.codec.decode(
                found.counterfactual,
                origin=origin,
                X=found.factual,
                kind="pyarrow",
                null=~kept,
                values=values,
                wide=wide,
            )

        features, wide = write(found.found, wide=False), False
        judged = self._read_back(features, found, freedom, place)
        if (found.found & ~judged.sound).any():
            if any(pa.types.is_float32(column.type) for column in self.learnt.codec.types):
                exact = self._read_back(write(found.found, wide=True), found, freedom, place)
                wide = bool(exact.sound.sum() > judged.sound.sum())
                judged = exact if wide else judged
            features = write(judged.sound, wide)
        return features, judged

    def _read_back(
        self, features: pa.Table, found: Counterfactuals, freedom: Freedom, place: NDArray[np.intp]
    ) -> Judged:
        """Encode the plans as written; sound are those that are favourable and allowed as they stand in the table."""
        n, layout = len(found), self.learnt.codec.layout
        at = np.flatnonzero(found.found)
        if not len(at):
            rows, values = np.full_like(found.factual, np.nan), np.full((n, len(layout.features)), np.nan)
            return Judged(rows, values, np.full(n, np.nan), found.found)
        again = self.learnt.codec.encode(_lines(features, at))
        u, x, who = picked(at, found.counterfactual, found.factual, place)
        # what does not change was copied, and is what it was, whatever the type of the column makes of it
        same = ~layout.changed(u, x)
        (own,) = picked(who, freedom.own)
        values = np.where(same, own, again.values)
        rows = np.where(np.repeat(same, [block.width for block in layout.features], axis=1), x, again.rows)
        probability, sound = np.full(n, np.nan), np.zeros(n, dtype=np.bool_)
        good, read, meant = picked(np.flatnonzero(~again.bad), at, rows, values)
        probability[good] = self.learnt.decides.probability(read, meant)
        sound[good] = self._favourable(read, probability[good]) & _obey(freedom.rows(place[good]), meant)
        return Judged(placed(n, at, rows), placed(n, at, values), probability, sound)

    def _favourable(self, rows: Array, probability: Array) -> Mask:
        """Which plans the model favours by as much, and as lastingly, as was asked."""
        logits, survival = logit_of(probability), self.asked.survival
        good = (probability > 0.5) & (logits >= self.asked.margin)
        if survival is not None:
            good &= self.learnt.trust.survival(rows, logits) >= survival
        return np.asarray(good)


def _obey(people: Freedom, values: Array) -> Mask:
    """Which plans, in the user's units, obey all constraints of the people."""
    good = np.ones(len(values), dtype=np.bool_)
    for constraint in people.constraints:
        good &= ~constraint.broken(people.own, values, people.schema)
    return good


def _with_bad_rows(found: Counterfactuals, good: NDArray[np.intp], encoded: Encoded) -> Counterfactuals:
    """Put the unreadable rows back among the answers, in the order of the query."""
    bad = np.flatnonzero(encoded.bad)
    n, width = len(bad), encoded.rows.shape[1]
    rows = joined(good[found.row], bad)
    order = np.argsort(rows, kind="stable")

    def with_bad(mine: NDArray[Any], for_bad: NDArray[Any]) -> NDArray[Any]:
        return picked(order, joined(mine, for_bad))[0]

    return Counterfactuals(
        row=rows[order],
        plan=with_bad(found.plan, np.zeros(n, np.int64)),
        factual=with_bad(found.factual, np.full((n, width), np.nan)),
        counterfactual=with_bad(found.counterfactual, np.full((n, width), np.nan)),
        target=with_bad(found.target, np.ones(n, np.int64)),
        found=with_bad(found.found, np.zeros(n, np.bool_)),
        cost=None if found.cost is None else with_bad(found.cost, np.full(n, np.nan)),
        status=with_bad(found.status.astype(object), np.full(n, str(Status.BAD_INPUT), dtype=object)).astype(np.str_),
    )


def _lines(table: pa.Table, at: NDArray[np.intp]) -> pa.Table:
    """Some of a table's lines; the table itself where that is all of it."""
    return table if is_everyone(at, len(table)) else table.take(pa.array(at))
