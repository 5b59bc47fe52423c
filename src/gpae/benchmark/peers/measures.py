"""How good answers are: each as the whole-number row inside the data's range that it means, judged by the one model."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from gpae.benchmark.peers.case import Case
from gpae.benchmark.peers.plain.columns import Array, Mask, TableColumns
from gpae.benchmark.peers.plain.model import PlainModel

__all__ = ["Measures", "Quality", "Scores"]

_NEIGHBOURS = 5
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Quality:
    """The figures of one method.

    Parameters
    ----------
    rows, answered
        People asked about, and those of them who got an answer.
    valid_as_given
        Share of the people *asked about* whose answer the model favours as it stands.
    valid
        The same once numbers are rounded to whole ones and brought into range. The next five are means over these
        answers, as rounded.
    l2, l2_median
        Sum of the squared differences of the standardised numbers.
    changes
        Features that differ.
    neighbours, neighbours_by_label
        Mean distance to the five nearest training rows that the model favours, or that are labelled favourable, in
        standardised numbers and one-hot levels.
    whole, in_range, immutables_kept
        Shares of the answers, as given, with whole numbers, inside the data's range, and with the immutables untouched.
    violations
        Share of the answers that break one of these three.
    """

    rows: int
    answered: int
    valid_as_given: float
    valid: float
    l2: float
    l2_median: float
    changes: float
    neighbours: float
    neighbours_by_label: float
    whole: float
    in_range: float
    immutables_kept: float
    violations: float


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The same for each of the people asked about; what an answer that is not valid would have had is NaN."""

    answered: Mask
    valid_as_given: Mask
    valid: Mask
    l2: Array
    changes: Array
    neighbours: Array
    neighbours_by_label: Array
    whole: Mask
    in_range: Mask
    immutables_kept: Mask

    def of(self, people: Mask) -> "Scores":
        """Those of some of the people."""
        return Scores(**{part.name: getattr(self, part.name)[people] for part in fields(self)})

    def quality(self) -> Quality:
        """Over all people."""
        good, there = self.valid, self.answered
        return Quality(
            rows=len(there),
            answered=int(there.sum()),
            valid_as_given=_mean(self.valid_as_given),
            valid=_mean(good),
            l2=_mean(self.l2[good]),
            l2_median=float(np.median(self.l2[good])) if good.any() else float("nan"),
            changes=_mean(self.changes[good]),
            neighbours=_mean(self.neighbours[good]),
            neighbours_by_label=_mean(self.neighbours_by_label[good]),
            whole=_mean(self.whole[there]),
            in_range=_mean(self.in_range[there]),
            immutables_kept=_mean(self.immutables_kept[there]),
            violations=1.0 - _mean((self.whole & self.in_range & self.immutables_kept)[there]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """The model, the range of the training rows, and the favourable ones among them."""

    model: PlainModel
    lowest: Array
    highest: Array
    """Of each number; where it has states (codes beside the range), of what is no state: from zero on."""
    favoured: NearestNeighbors
    labelled: NearestNeighbors

    @classmethod
    def of(cls, case: Case) -> "Measures":
        """From a model and its training rows."""
        model, train, columns = case.model, case.train, case.model.columns
        numbers, inputs = train[columns.numbers].to_numpy(dtype=float), columns.inputs(train)
        stated = np.array([bool(columns.states.get(name)) for name in columns.numbers], dtype=np.bool_)
        near = [
            NearestNeighbors(n_neighbors=min(_NEIGHBOURS, int(which.sum()))).fit(inputs[which])
            for which in (model.favourable(inputs) > 0.5, train[columns.label].to_numpy() == 1)
        ]
        return cls(model, np.where(stated, 0.0, numbers.min(axis=0)), numbers.max(axis=0), *near)

    def scores(self, queries: pd.DataFrame, answers: Sequence[dict[str, Any] | None]) -> Scores:
        """Measure the answers to queries, one entry each."""
        at = np.flatnonzero([answer is not None for answer in answers])
        own, columns = queries.iloc[at], self.model.columns
        told = _Told.of(
            self, own, pd.DataFrame([answers[place] for place in at.tolist()], columns=list(queries.columns))
        )
        valid = told.favoured(told.settled)
        new, old = columns.encoded(told.settled[valid], told.codes[valid]), columns.inputs(own)[valid]
        way = np.square(new - old)[:, : len(self.lowest)].sum(axis=1)
        n, good = len(queries), at[valid]
        return Scores(
            answered=_flags(n, at, np.ones(len(at), dtype=np.bool_)),
            valid_as_given=_flags(n, at, told.favoured(told.given)),
            valid=_flags(n, at, valid),
            l2=_values(n, good, way),
            changes=_values(n, good, told.changes()[valid]),
            neighbours=_values(n, good, _distance(self.favoured, new)),
            neighbours_by_label=_values(n, good, _distance(self.labelled, new)),
            whole=_flags(n, at, told.whole()),
            in_range=_flags(n, at, told.in_range()),
            immutables_kept=_flags(n, at, told.immutables_kept()),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """Answers beside the people who got them."""

    model: PlainModel
    own: pd.DataFrame
    low: Array
    high: Array
    given: Array
    """The numbers as given, n x number of them; NaN for what is no number."""
    settled: Array
    """The numbers rounded and brought into range."""
    codes: NDArray[np.intp]
    """The places of the levels; -1 for what is none."""

    @classmethod
    def of(cls, ground: Measures, own: pd.DataFrame, answers: pd.DataFrame) -> "_Told":
        """A value of one's own is in range, whatever it is; a state is one of its own and stretches nothing."""
        columns = ground.model.columns
        mine = own[columns.numbers].to_numpy(dtype=float)
        given = answers[columns.numbers].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
        stated = _is_state(mine, columns)
        low = np.where(stated, ground.lowest, np.minimum(ground.lowest, mine))
        high = np.where(stated, ground.highest, np.maximum(ground.highest, mine))
        settled = _settled(given, np.clip(np.rint(given), low, high), columns)
        codes = columns.codes(answers.astype(dict.fromkeys(columns.levels, str)))
        return cls(ground.model, own, low, high, given, settled, codes)

    def favoured(self, numbers: Array) -> Mask:
        """Which answers, with these numbers, are rows of the table that the model favours."""
        known = np.isfinite(numbers).all(axis=1) & (self.codes >= 0).all(axis=1)
        inputs = self.model.columns.encoded(np.nan_to_num(numbers, posinf=0.0, neginf=0.0), self.codes)
        return np.asarray(known & (self.model.favourable(inputs) > 0.5))

    def whole(self) -> Mask:
        """Which answers have whole numbers as given."""
        return np.asarray((np.abs(self.given - np.rint(self.given)) <= _SAME).all(axis=1))

    def in_range(self) -> Mask:
        """Which answers are in range as given."""
        inside = (self.given >= self.low - _SAME) & (self.given <= self.high + _SAME)
        return np.asarray((inside | _is_state(self.given, self.model.columns)).all(axis=1))

    def changes(self) -> NDArray[np.int64]:
        """How many features of each answer differ from the person's."""
        columns = self.model.columns
        moved = np.abs(self.settled - self.own[columns.numbers].to_numpy(dtype=float)) > _SAME
        switched = self.codes != columns.codes(self.own)
        return np.asarray(moved.sum(axis=1) + switched.sum(axis=1))

    def immutables_kept(self) -> Mask:
        """Which answers leave alone what must not change."""
        columns = self.model.columns
        numbers = [name in columns.immutable for name in columns.numbers]
        levels = [name in columns.immutable for name in columns.levels]
        moved = np.abs(self.given - self.own[columns.numbers].to_numpy(dtype=float)) > _SAME
        switched = self.codes != columns.codes(self.own)
        return np.asarray(~moved[:, numbers].any(axis=1) & ~switched[:, levels].any(axis=1))


def _is_state(numbers: Array, columns: TableColumns) -> Mask:
    """Which numbers are codes of a state."""
    found = np.zeros(numbers.shape, dtype=np.bool_)
    for place, name in enumerate(columns.numbers):
        found[:, place] = np.isin(numbers[:, place], columns.states.get(name, []))
    return found


def _settled(given: Array, settled: Array, columns: TableColumns) -> Array:
    """Numbers in range, or the state that lies nearer to what was given."""
    for place, name in enumerate(columns.numbers):
        for code in columns.states.get(name, []):
            nearer = np.abs(code - given[:, place]) < np.abs(settled[:, place] - given[:, place])
            settled[nearer, place] = code
    return settled


def _distance(near: NearestNeighbors, inputs: Array) -> Array:
    return np.asarray(near.kneighbors(inputs)[0].mean(axis=1)) if len(inputs) else np.zeros(0)


def _values(n: int, at: NDArray[np.intp], values: NDArray[Any]) -> Array:
    """Values at places among n; NaN elsewhere."""
    out = np.full(n, np.nan)
    out[at] = values
    return out


def _flags(n: int, at: NDArray[np.intp], values: Mask) -> Mask:
    out = np.zeros(n, dtype=np.bool_)
    out[at] = values
    return out


def _mean(values: NDArray[Any]) -> float:
    """The mean; of nothing, no number."""
    return float(values.mean()) if len(values) else float("nan")
