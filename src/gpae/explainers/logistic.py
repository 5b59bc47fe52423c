"""LogReg: mirror the person in the hyperplane of a logistic regression."""

from typing import Literal

import numpy as np

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import InputError, one_of
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.models.explained import explained_classifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.logistic import LogisticClassifier
from gpae.table.layout import Layout

__all__ = ["Logistic"]

_LEAST = 1e-3
"""Logit units: on the boundary nothing is decided, and from there no multiple of the distance leads away."""


class Logistic(Explainer):
    """A straight step along the weights of a logistic regression, the same direction for everybody.

    **Objective.** With a(x) = v'x + v_0, v_M its weights on the columns that may change, and s the target's side,

        x' = x + s step |a(x)| / |v_M|^2 v_M,

    the Euclidean projection onto the hyperplane for step = 1, the mirror point, with logit -a(x), for step = 2. Levels
    become the one that the step favours most, the row is rounded into the person's bounds and judged. Where that costs
    it the class, the step is a quarter longer, and so on: in the limit every column is at the end of its range that
    the model likes best, so that on its own model nothing is missed that it would accept.

    **Differs from the paper.** It gives no step; its large distances and a validity of 0.99 exclude 1. It says nothing
    of ranges and levels, where the bare formula leaves the data; ``rounds=1`` takes one step of the given length, and
    answers less. The paper has this method explain its own model only; ``mode="posthoc"`` explains the GPAE's
    classifier with a logistic model of that classifier's labels.

    Parameters
    ----------
    classifier
        The classifier to explain with ``mode="posthoc"``, fitted or not; None: a :class:`GPAEClassifier` with its
        defaults.
    mode
        ``"native"``: the logistic model is the classifier. ``"posthoc"``: it only gives the direction.
    step
        Multiples of the distance to the hyperplane.
    rounds, growth
        How many steps are tried, each so many times as long as the one before.
    """

    classifier_: LogisticClassifier | GPAEClassifier
    logistic_: LogisticClassifier

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        mode: Literal["native", "posthoc"] = "native",
        step: float = 2.0,
        rounds: int = 40,
        growth: float = 1.25,
    ) -> None:
        self.classifier = classifier
        self.mode = mode
        self.step = step
        self.rounds = rounds
        self.growth = growth

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self._check_parameters()
        if self.mode == "native":
            self.logistic_ = LogisticClassifier.fit(X, y)
            return self.logistic_
        explained = explained_classifier(self.classifier, X, y, validation)
        said = (explained.predict_proba(X)[:, 1] > 0.5).astype(np.int64)
        self.logistic_ = LogisticClassifier.fit(X, said)
        return explained

    def _check_parameters(self) -> None:
        one_of("mode", self.mode, ("native", "posthoc"))
        for name in ("step", "growth"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 1):
                raise InputError(f"{name}={value!r} must be a number of at least 1")
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int | np.integer) or self.rounds < 1:
            raise InputError(f"rounds={self.rounds!r} must be a whole number of at least 1")

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        way = self._way(query)
        answer, found = query.x.copy(), np.zeros(len(way), dtype=np.bool_)
        for round_ in range(self.rounds):
            left = np.flatnonzero(~found)
            if not len(left):
                break
            moved = query.x[left] + self.step * self.growth**round_ * way[left]
            u = self._written(query, left, moved)
            good = self._verified(query, left, u)
            answer[left[good]], found[left[good]] = u[good], True
        row = np.flatnonzero(found)
        return row, answer[row]

    def _way(self, query: Query) -> Rows:
        """From each person to the hyperplane, or as far from it on the way to the target's side."""
        v = np.where(query.lower < query.upper, self.logistic_.weights, 0.0)
        length = np.square(v).sum(axis=1)
        distance = np.maximum(np.abs(self.logistic_.decision_function(query.x)), _LEAST)
        share = np.divide(distance, length, out=np.zeros_like(length), where=length > 0)
        return ((2 * query.target - 1) * share)[:, None] * v

    def _written(self, query: Query, people: Labels, moved: Rows) -> Rows:
        """As rows that can be returned; levels by the step as it is, before the range makes several of them equal."""
        lower, upper = query.lower[people], query.upper[people]
        for group in self.layout_.groups:
            score = np.where(upper[:, group] > 0, moved[:, group], -np.inf)
            moved[:, group] = np.arange(len(group)) == score.argmax(axis=1)[:, None]
        return self.layout_.snap(moved, query.x[people], lower, upper)

    def state(self) -> State:
        """The logistic model, and the classifier where that is another."""
        state = State({}, {}).with_part("logistic", self.logistic_.state())
        if isinstance(self.classifier_, GPAEClassifier):
            state = state.with_part("classifier", self.classifier_.state())
        return state

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_ = layout
        self.logistic_ = LogisticClassifier.from_state(state.part("logistic"))
        own = "classifier" not in state.values
        self.classifier_ = self.logistic_ if own else GPAEClassifier.from_state(state.part("classifier"))


EXPLAINERS.add("logistic", Logistic, paper_name="LogReg")
