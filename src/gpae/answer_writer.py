"""From encoded counterfactuals to an answer in the user's units, every plan judged as it is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpae.answer import OWN_COLUMNS, Answer
from gpae.arrays import Mask, Rows
from gpae.favourable import FavourableRows
from gpae.plots.plan_view import Change, LevelChange, NumberChange, PlanView
from gpae.results import Counterfactuals, Status
from gpae.table.codec import Codec, Encoded
from gpae.table.frames import frame_kind, to_arrow
from gpae.table.freedom import Freedom
from gpae.table.schema import Continuous, Integer

__all__ = ["AnswerWriter"]


class Decides(Protocol):
    """The model that decides."""

    def probability(self, rows: Rows, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the favourable class, for rows given encoded and in the user's units."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class AnswerWriter:
    """What it takes to write plans down and to judge them."""

    codec: Codec
    decides: Decides
    density: Any
    """Something with ``score_samples`` for encoded rows, or anything else where no density is known."""
    favourable: FavourableRows
    prefix: str

    def write(
        self,
        table: Any,
        encoded: Encoded,
        good: NDArray[np.intp],
        found: Counterfactuals,
        freedom: Freedom,
        reasons: Mapping[int, str],
    ) -> Answer:
        """Write the plans found for the good rows of a table; the bad rows are answered with their reason.

        ``freedom`` is that of the good rows, and ``reasons`` are further ones, by position among them.
        """
        obeys = _Obeys(freedom, {int(row): at for at, row in enumerate(good)})
        found = _with_bad_rows(found, good, encoded)
        origin = pa.table(to_arrow(table)).take(pa.array(found.row))
        features = self._in_users_units(origin, found, found.found)
        written, sound = self._read_back(features, found, obeys)
        lost = found.found & ~sound
        if lost.any():
            features = self._in_users_units(origin, found, sound)
        status = np.where(lost, Status.NOT_FOUND, found.status)
        plans = _Plans(self, origin, features, found, written, sound)
        why = list(encoded.reasons)
        for at, words in reasons.items():
            why[int(good[at])] = words
        own = plans.figures(status, why)
        columns = {self.prefix + n: own[n] for n in OWN_COLUMNS[:4]}
        columns |= dict(zip(features.column_names, features.columns, strict=True))
        columns |= {self.prefix + n: own[n] for n in OWN_COLUMNS[4:]}
        return Answer(pa.table(columns), plans.changes(), frame_kind(table), self.prefix, plans.view)

    def log_density(self, X: Rows) -> NDArray[np.float64]:
        """Of each row's latent; NaN where no density is known."""
        if not len(X) or not hasattr(self.density, "score_samples"):
            return np.full(len(X), np.nan)
        return np.asarray(self.density.score_samples(X))

    def plausibility(self, log_density: NDArray[np.float64]) -> NDArray[np.float64]:
        """Percentile among the favourable training rows; NaN where there is no density."""
        if not len(self.favourable.log_densities):
            return np.full(len(log_density), np.nan)
        return self.favourable.percentile(log_density)

    @property
    def outcome(self) -> str:
        """The favourable label."""
        assert self.codec.schema.labels is not None
        return str(self.codec.schema.labels[1])

    def _in_users_units(self, origin: pa.Table, found: Counterfactuals, kept: Mask) -> pa.Table:
        return self.codec.decode(found.counterfactual, origin=origin, X=found.factual, kind="pyarrow", null=~kept)

    def _read_back(self, features: pa.Table, found: Counterfactuals, obeys: "_Obeys") -> "tuple[_Written, Mask]":
        """Encode the plans as written; sound are those that are favourable and allowed as they stand in the table."""
        written = _Written.nothing(found, len(self.codec.schema.features))
        at = np.flatnonzero(found.found)
        sound = np.zeros(len(found), dtype=np.bool_)
        if len(at):
            again = self.codec.encode(features.take(pa.array(at)))
            written.rows[at], written.values[at] = again.rows, again.values
            at = at[~again.bad]
            written.probability[at] = self.decides.probability(written.rows[at], written.values[at])
            sound[at] = (written.probability[at] > 0.5) & obeys(found.row[at], written.values[at])
        return written, sound


@dataclass(frozen=True, slots=True, eq=False)
class _Obeys:
    """The constraints of the people asked about, who are named by their place in the table."""

    freedom: Freedom
    place: Mapping[int, int]

    def __call__(self, row: NDArray[np.int64], values: NDArray[np.float64]) -> Mask:
        """Which plans, in the user's units, obey all of them."""
        at = np.array([self.place[int(one)] for one in row], dtype=np.intp)
        people = self.freedom.rows(at)
        good = np.ones(len(at), dtype=np.bool_)
        for constraint in people.constraints:
            good &= ~constraint.broken(people.own, values, people.schema)
        return good


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """Plans as they stand in the table, read again: encoded, in the user's units, and what the model says of them."""

    rows: Rows
    values: NDArray[np.float64]
    probability: NDArray[np.float64]

    @classmethod
    def nothing(cls, found: Counterfactuals, n_features: int) -> "_Written":
        n = len(found)
        return cls(np.full_like(found.factual, np.nan), np.full((n, n_features), np.nan), np.full(n, np.nan))


@dataclass(frozen=True, slots=True, eq=False)
class _Plans:
    """The lines of one answer: where each began, what was written, and the encoding of that."""

    writer: AnswerWriter
    origin: pa.Table
    features: pa.Table
    found: Counterfactuals
    written: _Written
    sound: Mask

    def figures(self, status: NDArray[np.str_], why: list[str]) -> dict[str, pa.Array]:
        """Our own columns."""
        u, x, writer = self.written.rows[self.sound], self.found.factual[self.sound], self.writer
        log_density = writer.log_density(u)
        cost = np.full(len(self.sound), np.nan) if self.found.cost is None else self.found.cost
        lines = zip(status, self.found.row, self.sound, strict=True)
        reasons = ["" if sound else self._reason(str(s), why[r]) for s, r, sound in lines]
        return {
            "row": pa.array(self.found.row, pa.int64()),
            "plan": pa.array(self.found.plan, pa.int64()),
            "status": pa.array(status.astype(object), pa.string()),
            "found": pa.array(self.sound, pa.bool_()),
            "probability": self._at_plans(self.written.probability[self.sound]),
            "distance": self._at_plans(np.linalg.norm(u - x, axis=1)),
            "changes": self._at_plans(writer.codec.layout.n_changes(u, x)),
            "log_density": self._at_plans(log_density),
            "plausibility": self._at_plans(writer.plausibility(log_density)),
            "reason": pa.array(reasons, pa.string()),
            "cost": self._at_plans(cost[self.sound]),
        }

    def _at_plans(self, values: NDArray[Any]) -> pa.Array:
        full = np.zeros(len(self.sound), dtype=values.dtype)
        full[self.sound] = values
        return pa.array(full, mask=~self.sound | np.isnan(full))

    def _reason(self, status: str, why: str) -> str:
        outcome = self.writer.outcome
        return {
            Status.BAD_INPUT: why,
            Status.ALREADY_FAVOURABLE: f"the model already says {outcome!r}",
            Status.INFEASIBLE: why or f"nothing of this row may change, and the model does not say {outcome!r}",
            Status.TIMEOUT: f"time ran out before a change was found that makes the model say {outcome!r}",
            Status.NOT_FOUND: f"no allowed change was found that makes the model say {outcome!r}; "
            "let more features change",
        }.get(Status(status), "")

    def changes(self) -> pa.Table:
        """One line a changed feature, before and after as text."""
        names = self.writer.codec.schema.names
        changed = np.zeros((len(self.sound), len(names)), dtype=np.bool_)
        changed[self.sound] = self.writer.codec.layout.changed(
            self.written.rows[self.sound], self.found.factual[self.sound]
        )
        line, feature = np.nonzero(changed)
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

    def view(self, line: int) -> PlanView:
        """The picture's view of one line."""
        writer, schema = self.writer, self.writer.codec.schema
        x, u = self.found.factual[line : line + 1], self.written.rows[line : line + 1]
        before = writer.codec.encode(self.origin.slice(line, 1)).values
        changed = writer.codec.layout.changed(u, x)[0]
        plausibility = float(writer.plausibility(writer.log_density(u))[0])
        return PlanView(
            outcome=f"{schema.label} {writer.outcome}",
            changes=tuple(self._change(line, int(i)) for i in np.flatnonzero(changed)),
            unchanged=tuple(name for name, moved in zip(schema.names, changed, strict=True) if not moved),
            probability_before=float(writer.decides.probability(x, before)[0]),
            probability_after=float(self.written.probability[line]),
            plausibility=None if np.isnan(plausibility) else plausibility,
        )

    def _change(self, line: int, i: int) -> Change:
        feature, backdrop = self.writer.codec.schema.features[i], self.writer.favourable.distributions[i]
        before, after = (table[feature.name][line].as_py() for table in (self.origin, self.features))
        if isinstance(feature, Continuous | Integer):
            start, end = (None if value is None else float(value) for value in (before, after))
            return NumberChange(feature.name, start, end, reference=backdrop, decimals=feature.decimals)
        shares = {str(level): float(s) for level, s in zip(feature.levels, backdrop, strict=False)}
        old, new = ("missing" if value is None else str(value) for value in (before, after))
        return LevelChange(feature.name, old, new, shares=shares)


def _with_bad_rows(found: Counterfactuals, good: NDArray[np.intp], encoded: Encoded) -> Counterfactuals:
    """Put the unreadable rows back among the answers, in the order of the query."""
    bad = np.flatnonzero(encoded.bad)
    n, width = len(bad), encoded.rows.shape[1]
    rows = np.concatenate([good[found.row], bad]) if len(found) else bad
    order = np.argsort(rows, kind="stable")

    def joined(mine: NDArray[Any], for_bad: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([mine, for_bad])[order]

    return Counterfactuals(
        row=rows[order],
        plan=joined(found.plan, np.zeros(n, np.int64)),
        factual=joined(found.factual, np.full((n, width), np.nan)),
        counterfactual=joined(found.counterfactual, np.full((n, width), np.nan)),
        target=joined(found.target, np.ones(n, np.int64)),
        found=joined(found.found, np.zeros(n, np.bool_)),
        cost=None if found.cost is None else joined(found.cost, np.full(n, np.nan)),
        status=joined(found.status.astype(object), np.full(n, str(Status.BAD_INPUT), dtype=object)).astype(np.str_),
    )
