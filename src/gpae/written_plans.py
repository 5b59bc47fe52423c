"""The lines of one answer: where each began, what was written, and what there is to say of it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpae.arrays import Mask, Rows, picked
from gpae.errors import InputError
from gpae.learnt import Learnt
from gpae.models.given_model import logit_of
from gpae.plan_finder import Asked, Outcome
from gpae.plots.plan_view import Change, LevelChange, NumberChange, PlanView
from gpae.proofs.certificate import Certificate
from gpae.proofs.challenge import challenged
from gpae.refusal import Reason, reasons_for
from gpae.results import Counterfactuals, Status
from gpae.search.ranges import Ranges, ranges_of
from gpae.search.refine import Judge
from gpae.table.constraint import Array, is_number
from gpae.table.freedom import Freedom
from gpae.table.levels import listed
from gpae.words import ChangeInWords, change_sentence, range_words, written

__all__ = ["Judged", "WrittenPlans"]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Plans as they stand in the table, read again: encoded, in the user's units, and what the model says of them."""

    rows: Rows
    values: Array
    probability: Array
    sound: Mask
    """Which are favourable and allowed as they stand, with everything that was asked."""


@dataclass(frozen=True, eq=False)
class WrittenPlans:
    """Plans in long form, and what it takes to speak of them; what costs questions to the model is asked when wanted.

    Parameters
    ----------
    learnt, asked
        The model behind the plans, and what was asked of them.
    origin, features
        Tables, one line a plan: the person as given, and the plan.
    found, judged
        The plans as found, and as written.
    freedom, place
        What the readable people may become, and where each line's person stands there (-1: unreadable).
    """

    learnt: Learnt
    asked: Asked
    origin: pa.Table
    features: pa.Table
    found: Counterfactuals
    judged: Judged
    freedom: Freedom
    place: NDArray[np.intp]
    outcome: Outcome
    why: list[str] = field(default_factory=list)
    """Of unreadable people, by row of the query."""

    @property
    def sound(self) -> Mask:
        """Which lines hold a plan."""
        return self.judged.sound

    @property
    def wanted(self) -> str:
        """The favourable label."""
        assert self.learnt.codec.schema.labels is not None
        return str(self.learnt.codec.schema.labels[1])

    # our own columns

    def figures(self) -> dict[str, pa.Array]:
        """Our own columns, by name."""
        u, x = picked(np.flatnonzero(self.sound), self.judged.rows, self.found.factual)
        way = u - x
        logits = logit_of(self.judged.probability[self.sound])
        log_density, trust = self._log_density(u), self.learnt.trust
        cost = np.full(len(self.sound), np.nan) if self.found.cost is None else self.found.cost
        status = np.where(self.found.found & ~self.sound, Status.NOT_FOUND, self.found.status)
        return {
            "row": pa.array(self.found.row, pa.int64()),
            "plan": pa.array(self.found.plan, pa.int64()),
            "status": pa.array(status.astype(object), pa.string()),
            "found": pa.array(self.sound, pa.bool_()),
            "probability": self._at_plans(self.judged.probability[self.sound]),
            "distance": self._at_plans(np.sqrt(np.einsum("ij,ij->i", way, way))),
            "changes": self._at_plans(self.learnt.codec.layout.n_changes(u, x)),
            "log_density": self._at_plans(log_density),
            "plausibility": self._at_plans(self._plausibility(log_density)),
            "calibrated": self._at_plans(trust.calibrated(logits)),
            "survival": self._at_plans(trust.survival(u, logits)),
            "cost": self._at_plans(cost[self.sound]),
            "reason": pa.array(self._reasons(status), pa.string()),
        }

    def _at_plans(self, values: NDArray[Any]) -> pa.Array:
        full = np.zeros(len(self.sound), dtype=values.dtype)
        full[self.sound] = values
        return pa.array(full, mask=~self.sound | np.isnan(full))

    def _log_density(self, U: Rows) -> Array:
        """Of each row's latent; NaN where no density is known."""
        density = self.learnt.method.classifier_
        if not len(U) or not hasattr(density, "score_samples"):
            return np.full(len(U), np.nan)
        return np.asarray(density.score_samples(U))

    def _plausibility(self, log_density: Array) -> Array:
        """Percentile among the favourable training rows; NaN where there is no density."""
        if not len(self.learnt.favourable.log_densities):
            return np.full(len(log_density), np.nan)
        return self.learnt.favourable.percentile(log_density)

    def _reasons(self, status: NDArray[np.str_]) -> NDArray[np.object_]:
        """Why a line has no plan: what there is to say of the person, or else of everybody with this status."""
        wanted = repr(self.wanted)
        usual = {
            Status.ALREADY_FAVOURABLE: f"the model already says {wanted}",
            Status.INFEASIBLE: f"nothing of this row may change, and the model does not say {wanted}",
            Status.TIMEOUT: f"time ran out before a change was found that makes the model say {wanted}",
            Status.NOT_FOUND: f"no allowed change was found that makes the model say {wanted}",
        }
        reasons = np.full(len(status), "", dtype=object)
        for each, text in usual.items():
            reasons[(status == each) & ~self.sound] = text
        for line in np.flatnonzero(np.isin(status, [Status.INFEASIBLE, Status.NOT_FOUND])):
            reasons[line] = self.outcome.reasons.get(int(self.place[line])) or reasons[line]
        for line in np.flatnonzero(status == Status.BAD_INPUT):
            reasons[line] = self.why[self.found.row[line]]
        return reasons

    def certificates(self) -> dict[int, dict[str, Any]]:
        """The proofs of those who have no plan, by row of the query."""
        return {self._rows[at]: proof.to_dict() for at, proof in self.outcome.certificates.items()}

    def program(self, row: int) -> str:
        """The program behind one person's proof, in the LP format."""
        proof = self._proof(row)
        if proof.program is None:
            raise InputError(f"row {row} is proved on the ground {proof.ground!r}, which takes no program")
        return proof.program()

    def challenge(self, row: int, draws: int, seed: int) -> dict[str, Any]:
        """What the model says of rows drawn at random of those that one person may become."""
        self._proof(row)
        at = self.place[np.searchsorted(self.found.row, row)]
        wanted = self.learnt.finder(self.asked.survival).wanted
        return challenged(self.freedom.rows(np.array([at])), wanted, self.asked.margin, draws, seed)

    def _proof(self, row: int) -> Certificate:
        proofs = {self._rows[at]: proof for at, proof in self.outcome.certificates.items()}
        if row not in proofs:
            others = f"those with one are {listed(sorted(proofs))}" if proofs else "nobody has"
            raise InputError(f"row {row} has no proof; {others}")
        return proofs[row]

    # what changes

    def changes(self) -> pa.Table:
        """One line a changed feature, before and after as text."""
        line, feature = self._changed
        names = self.learnt.codec.schema.names
        before, after = ([""] * len(line) for _ in range(2))
        for i, name in enumerate(names):
            mine = np.flatnonzero(feature == i)
            for texts, table in ((before, self.origin), (after, self.features)):
                for at, cell in zip(mine, table[name].take(pa.array(line[mine])).to_pylist(), strict=True):
                    texts[at] = "missing" if cell is None else str(cell)
        return pa.table(
            {
                "row": pa.array(self.found.row[line], pa.int64()),
                "plan": pa.array(self.found.plan[line], pa.int64()),
                "feature": pa.array([names[i] for i in feature], pa.string()),
                "before": pa.array(before, pa.string()),
                "after": pa.array(after, pa.string()),
            }
        )

    @cached_property
    def _rows(self) -> dict[int, int]:
        """The row of the query of each readable person."""
        return {int(at): int(row) for at, row in zip(self.place, self.found.row, strict=True)}

    @cached_property
    def _changed(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Line and feature of every change, in order."""
        layout = self.learnt.codec.layout
        changed = np.zeros((len(self.sound), len(layout.features)), dtype=np.bool_)
        changed[self.sound] = layout.changed(self.judged.rows[self.sound], self.found.factual[self.sound])
        line, feature = np.nonzero(changed)
        return line, feature

    # ranges and sentences

    @cached_property
    def ranges(self) -> list[ChangeInWords]:
        """Every change with the values between which the decision stays, in the order of :meth:`changes`."""
        return self._in_words(np.flatnonzero(self.sound))

    def _in_words(self, lines: NDArray[np.intp]) -> list[ChangeInWords]:
        """The changes of some lines."""
        people = len(self.freedom)
        wanted = self.learnt.finder(self.asked.survival).wanted
        judge = Judge(wanted, np.ones(people), np.full(people, self.asked.margin))
        ranges = ranges_of(self.freedom, judge, self.place[lines], self.judged.rows[lines])
        return [self._change_in_words(ranges, i, int(lines[at])) for i, at in enumerate(ranges.plan)]

    def _change_in_words(self, ranges: Ranges, i: int, line: int) -> ChangeInWords:
        feature, person = int(ranges.feature[i]), int(self.place[line])
        lowest, highest = self._reach(person, feature)
        low, high = (ranges.low[i], ranges.high[i]) if ranges.levels[i] is None else (np.nan, np.nan)
        return ChangeInWords(
            self.freedom.schema.features[feature],
            float(self.freedom.own[person, feature]),
            float(self.judged.values[line, feature]),
            float(low),
            float(high),
            lowest,
            highest,
            ranges.levels[i],
        )

    def _reach(self, person: int, feature: int) -> tuple[float, float]:
        """The least and the largest amount that there is, as far as a person's number knows."""
        column, own = self.freedom.schema.features[feature], float(self.freedom.own[person, feature])
        if not is_number(column):
            return -np.inf, np.inf
        # states beside the range are no ends of it
        ends = [float(column.minimum), float(column.maximum), *([] if own in column.codes or np.isnan(own) else [own])]
        return min(ends), max(ends)

    def told(self) -> pa.Table:
        """One line a changed feature: where it could lie as well, and the change as a sentence."""
        line, feature = self._changed
        return pa.table(
            {
                "row": pa.array(self.found.row[line], pa.int64()),
                "plan": pa.array(self.found.plan[line], pa.int64()),
                "feature": pa.array([self.learnt.codec.schema.names[i] for i in feature], pa.string()),
                "low": pa.array([change.low for change in self.ranges], pa.float64(), from_pandas=True),
                "high": pa.array([change.high for change in self.ranges], pa.float64(), from_pandas=True),
                "range": pa.array([range_words(change) for change in self.ranges], pa.string()),
                "sentence": pa.array([change_sentence(change) for change in self.ranges], pa.string()),
            }
        )

    # why the model refuses

    @cached_property
    def refusals(self) -> list[Reason]:
        """The main reasons why the model refuses people, each person's weightiest first."""
        refused = np.unique(self.place[(self.place >= 0) & (self.found.status != Status.ALREADY_FAVOURABLE)])
        return reasons_for(self.learnt.decides.logits, self.freedom, refused, self.learnt.favourable.some)

    def refused(self) -> pa.Table:
        """One line a reason: whose, the feature, its value, what the favoured usually have, and what that is worth."""
        features = self.freedom.schema.features
        lines = [(self._rows[one.person], features[one.feature], one) for one in self.refusals]
        return pa.table(
            {
                "row": pa.array([at for at, _, _ in lines], pa.int64()),
                "feature": pa.array([feature.name for _, feature, _ in lines], pa.string()),
                "value": pa.array([written(feature, one.value) for _, feature, one in lines], pa.string()),
                "usual": pa.array([written(feature, one.usual) for _, feature, one in lines], pa.string()),
                "weight": pa.array([one.weight for _, _, one in lines], pa.float64()),
            }
        )

    def refused_for(self, row: int) -> str:
        """The main reasons why one person of the query is refused, in words; only this person is asked about."""
        at = self.place[np.searchsorted(self.found.row, row)]
        if at < 0:
            return ""
        found = reasons_for(self.learnt.decides.logits, self.freedom, np.array([at]), self.learnt.favourable.some)
        features = [self.freedom.schema.features[one.feature] for one in found]
        told = [
            f"{feature.name} {written(feature, one.value)} (usually {written(feature, one.usual)})"
            for feature, one in zip(features, found, strict=True)
        ]
        return ", ".join(told)

    # the picture

    def view(self, line: int) -> PlanView:
        """The picture's view of one line."""
        schema = self.learnt.codec.schema
        x, u = self.found.factual[line : line + 1], self.judged.rows[line : line + 1]
        own = self.freedom.own[self.place[line]][None]
        changed = self.learnt.codec.layout.changed(u, x)[0]
        plausibility = float(self._plausibility(self._log_density(u))[0])
        survival = float(self.learnt.trust.survival(u, logit_of(self.judged.probability[line : line + 1]))[0])
        told = iter(self._in_words(np.array([line])))
        return PlanView(
            outcome=f"{schema.label} {self.wanted}",
            changes=tuple(self._change(line, int(i), next(told)) for i in np.flatnonzero(changed)),
            unchanged=tuple(name for name, moved in zip(schema.names, changed, strict=True) if not moved),
            probability_before=float(self.learnt.decides.probability(x, own)[0]),
            probability_after=float(self.judged.probability[line]),
            plausibility=None if np.isnan(plausibility) else plausibility,
            survival=None if np.isnan(survival) else survival,
        )

    def _change(self, line: int, i: int, change: ChangeInWords) -> Change:
        feature, backdrop = self.learnt.codec.schema.features[i], self.learnt.favourable.distributions[i]
        before, after = (table[feature.name][line].as_py() for table in (self.origin, self.features))
        if is_number(feature):
            start, end = (None if value is None else float(value) for value in (before, after))
            return NumberChange(
                feature.name, start, end, backdrop, feature.decimals, (change.low, change.high), change_sentence(change)
            )
        shares = {str(level): float(s) for level, s in zip(feature.levels, backdrop, strict=False)}
        old, new = ("missing" if value is None else str(value) for value in (before, after))
        return LevelChange(feature.name, old, new, shares, change_sentence(change))
