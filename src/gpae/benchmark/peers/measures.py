"""How good answers are: each as the whole-number row inside the data's range that it means, judged by the one model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from gpae.benchmark.peers.case import Case
from gpae.benchmark.peers.perceptron import Array, MultilayerPerceptron

__all__ = ["Measures", "Quality", "Scores"]

_NEIGHBOURS = 5
_SAME = 1e-9
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Quality:
    """The figures of one method.

    Parameters
    ----------
    rows, answered
        People asked about, and those of them who got an answer.
    valid
        Share of the people *asked about* whose answer the model favours once numbers are rounded to whole ones and
        brought into range. The next five are means over these answers, as rounded.
    l2, l2_median
        Sum of the squared differences of the standardised numbers.
    changes
        Features that differ.
    neighbours, neighbours_by_label
        Mean distance to the five nearest training rows that the model favours, or that are labelled favourable, in
        standardised numbers and one-hot levels.
    whole, in_range, immutables_kept
        Shares of the answers, as given, with whole numbers, inside the data's range, and with the immutables untouched.
    """

    rows: int
    answered: int
    valid: float
    l2: float
    l2_median: float
    changes: float
    neighbours: float
    neighbours_by_label: float
    whole: float
    in_range: float
    immutables_kept: float


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The same for each of the people asked about; what an answer that is not valid would have had is NaN."""

    answered: Mask
    valid: Mask
    l2: Array
    changes: Array
    neighbours: Array
    neighbours_by_label: Array
    whole: Mask
    in_range: Mask
    immutables_kept: Mask

    def quality(self) -> Quality:
        """Over all people."""
        good, there = self.valid, self.answered
        return Quality(
            rows=len(there),
            answered=int(there.sum()),
            valid=float(good.mean()),
            l2=_mean(self.l2[good]),
            l2_median=float(np.median(self.l2[good])) if good.any() else float("nan"),
            changes=_mean(self.changes[good]),
            neighbours=_mean(self.neighbours[good]),
            neighbours_by_label=_mean(self.neighbours_by_label[good]),
            whole=_mean(self.whole[there]),
            in_range=_mean(self.in_range[there]),
            immutables_kept=_mean(self.immutables_kept[there]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """The model, the range of the training rows, and the favourable ones among them."""

    model: MultilayerPerceptron
    lowest: Array
    highest: Array
    favoured: NearestNeighbors
    labelled: NearestNeighbors

    @classmethod
    def of(cls, case: Case) -> "Measures":
        """From a model and its training rows."""
        model, train = case.model, case.train
        numbers, inputs = train[model.meta["numbers"]].to_numpy(dtype=float), model.inputs(train)
        near = [
            NearestNeighbors(n_neighbors=min(_NEIGHBOURS, int(which.sum()))).fit(inputs[which])
            for which in (model.favourable(inputs) > 0.5, train[model.meta["label"]].to_numpy() == 1)
        ]
        return cls(model, numbers.min(axis=0), numbers.max(axis=0), *near)

    def scores(self, queries: pd.DataFrame, answers: Sequence[dict[str, Any] | None]) -> Scores:
        """Measure the answers to queries, one entry each."""
        at = np.flatnonzero([answer is not None for answer in answers])
        own = queries.iloc[at]
        told = _Told.of(
            self, own, pd.DataFrame([answers[place] for place in at.tolist()], columns=list(queries.columns))
        )
        valid = told.judged()
        good, new, old = at[valid], self.model.inputs(told.row)[valid], self.model.inputs(own)[valid]
        way = np.square(new - old)[:, : len(self.lowest)].sum(axis=1)
        n = len(queries)
        return Scores(
            answered=_flags(n, at, np.ones(len(at), dtype=np.bool_)),
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

    model: MultilayerPerceptron
    own: pd.DataFrame
    given: Array
    """The numbers as given, n x number of them; NaN for what is no number."""
    low: Array
    high: Array
    row: pd.DataFrame
    """The answers with numbers rounded and brought into range, and levels as text."""

    @classmethod
    def of(cls, ground: Measures, own: pd.DataFrame, answers: pd.DataFrame) -> "_Told":
        """A value of one's own is in range, whatever it is."""
        model = ground.model
        names = model.meta["numbers"]
        mine = own[names].to_numpy(dtype=float)
        given = answers[names].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
        low, high = np.minimum(ground.lowest, mine), np.maximum(ground.highest, mine)
        rounded = pd.DataFrame(np.clip(np.rint(given), low, high), columns=names)
        levels = {name: answers[name].astype(str) for name in model.levels}
        return cls(model, own, given, low, high, rounded.assign(**levels))

    def judged(self) -> Mask:
        """Which answers are rows of the table that the model favours."""
        known = np.isfinite(self.given).all(axis=1) & (self.model.codes(self.row) >= 0).all(axis=1)
        return np.asarray(known & (self.model.predict(self.row.fillna(0.0)) == 1))

    def whole(self) -> Mask:
        """Which answers have whole numbers as given."""
        return np.asarray((np.abs(self.given - np.rint(self.given)) <= _SAME).all(axis=1))

    def in_range(self) -> Mask:
        """Which answers are in range as given."""
        inside = (self.given >= self.low - _SAME) & (self.given <= self.high + _SAME)
        return np.asarray(inside.all(axis=1))

    def changes(self) -> NDArray[np.int64]:
        """How many features of each answer differ from the person's."""
        names = self.model.meta["numbers"]
        moved = np.abs(self.row[names].to_numpy() - self.own[names].to_numpy(dtype=float)) > _SAME
        switched = self.model.codes(self.row) != self.model.codes(self.own)
        return np.asarray(moved.sum(axis=1) + switched.sum(axis=1))

    def immutables_kept(self) -> Mask:
        """Which answers leave alone what must not change."""
        kept = np.ones(len(self.own), dtype=np.bool_)
        for name in self.model.meta["immutable"]:
            kept &= self.row[name].astype(str).to_numpy() == self.own[name].astype(str).to_numpy()
        return kept


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
