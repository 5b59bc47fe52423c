"""The contract of every method: fit on encoded rows, explain encoded rows, success measured by the classifier.

A method implements :meth:`Explainer._fit` and :meth:`Explainer._search`; validation, bookkeeping, the check of each
answer against bounds and classifier, and the statuses are the same for all and live here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gpae.arrays import Labels, Mask, Rows, joined, picked
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import InputError
from gpae.kernels.snapping import allowed
from gpae.registry import Registry
from gpae.results import Counterfactuals, Status, left_out
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout

__all__ = ["EXPLAINERS", "Explainer", "Query"]

EXPLAINERS: "Registry[type[Explainer]]" = Registry("method")


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Rows that need a counterfactual, and where they may go."""

    x: Rows
    target: Labels
    lower: Rows
    upper: Rows


class Explainer(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of all methods; sub-classes take keyword-only hyper-parameters, which ``__init__`` only keeps."""

    classifier_: Classifier
    layout_: Layout

    @final
    def fit(self, X: Rows, y: Labels, *, layout: Layout, validation: tuple[Rows, Labels] | None = None) -> "Explainer":
        """Fit on encoded rows and labels (1 is favourable)."""
        if X.ndim != 2 or X.shape[1] != layout.width:
            raise InputError(f"rows of shape {X.shape} do not fit a layout of {layout.width} columns")
        if not np.isfinite(X).all():
            raise InputError("the encoded rows hold NaN or infinite values")
        self.layout_ = layout
        self.classifier_ = self._fit(np.ascontiguousarray(X), y, validation)
        return self

    @final
    def explain(
        self,
        X: Rows,
        target: Labels | int = 1,
        *,
        fixed: Mask | None = None,
        k: int = 1,
        seed: int = 0,
    ) -> Counterfactuals:
        """Search up to ``k`` counterfactuals for each row.

        ``fixed`` (F or B x F) names features that must not change, beside those of the schema. A row that the
        classifier already puts in its target class is not searched, nor is one of which nothing may change.
        """
        check_is_fitted(self, "classifier_")
        if not isinstance(k, int | np.integer) or isinstance(k, bool):
            raise InputError(f"k is {k!r}: ask for a whole number of plans")
        if k < 1:
            raise InputError(f"k is {k}: ask for at least one plan")
        X = np.ascontiguousarray(X, dtype=np.float64)
        n_features = len(self.layout_.features)
        targets = np.broadcast_to(np.asarray(target, dtype=np.int64), len(X)).copy()
        kept = np.broadcast_to(False if fixed is None else np.asarray(fixed), (len(X), n_features))
        there = self._in_target(X, targets)
        lower, upper = self.layout_.box(X, kept)
        stuck = (lower == upper).all(axis=1)
        asked = np.flatnonzero(~there & ~stuck)
        query = Query(*picked(asked, X, targets, lower, upper))
        row, u = self._search(query, k, seed) if len(asked) else _nothing(X)
        good = self._verified(query, row, u)
        return _long_form(X, targets, there, stuck, *picked(np.flatnonzero(good), asked[row], u))

    def _in_target(self, X: Rows, target: Labels) -> Mask:
        """Strictly on the target's side: at probability one half nothing is decided."""
        if not len(X):
            return np.zeros(0, dtype=np.bool_)
        favourable = self.classifier_.predict_proba(X)[:, 1]
        return np.asarray(np.where(target == 1, favourable > 0.5, favourable < 0.5))

    def _verified(self, query: Query, row: Labels, u: Rows) -> Mask:
        """An answer counts if the classifier says so and the person may become that row."""
        if not len(u):
            return np.zeros(0, dtype=np.bool_)
        x, lower, upper, target = picked(row, query.x, query.lower, query.upper, query.target)
        return allowed(self.layout_, u, x, lower, upper) & self._in_target(u, target)

    @final
    def proposals(self, freedom: Freedom, seed: int = 0) -> tuple[Labels, Rows]:
        """One plan for each of some people inside their bounds, as far as the method finds one; nothing is verified.

        Rules between features are not looked at: these are proposals for a search that does.
        """
        query = Query(freedom.x, np.ones(len(freedom), np.int64), freedom.lower, freedom.upper)
        return self._search(query, 1, seed)

    @abstractmethod
    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        """Learn; return the classifier that is explained."""

    @abstractmethod
    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        """Return candidate answers in long form: positions in the query, and rows; a person's best plan first."""

    @abstractmethod
    def state(self) -> State:
        """Everything that a fitted method needs to answer again, without any code in it."""

    @abstractmethod
    def restore(self, state: State, layout: Layout) -> None:
        """Become the fitted method that :meth:`state` described."""


def _nothing(X: Rows) -> tuple[Labels, Rows]:
    return np.zeros(0, dtype=np.int64), X[:0]


def _long_form(X: Rows, target: Labels, there: Mask, stuck: Mask, row: Labels, u: Rows) -> Counterfactuals:
    """One entry an answer, plans renumbered, and one empty entry for each row without any.

    A row of which nothing may change is the one case that needs no search to be proved infeasible.
    """
    without = left_out(len(X), row)
    rows, answers = joined(row, without), joined(u, np.full((len(without), X.shape[1]), np.nan))
    found = np.arange(len(rows)) < len(row)
    rows, answers, found = picked(np.argsort(rows, kind="stable"), rows, answers, found)
    first = np.searchsorted(rows, rows, side="left")
    without_plan = np.where(stuck[rows], Status.INFEASIBLE, Status.NOT_FOUND)
    status = np.where(found, Status.FOUND, np.where(there[rows], Status.ALREADY_FAVOURABLE, without_plan))
    return Counterfactuals(
        row=rows,
        plan=np.arange(len(rows)) - first,
        factual=X[rows],
        counterfactual=answers,
        target=target[rows],
        found=found,
        status=status.astype(np.str_),
    )
