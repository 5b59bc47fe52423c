"""Ways to prove that a user's own model leaves a person no plan: those that its structure allows.

A model is taken for linear, or for a sum of trees, by its class, behind transformers that are known to treat every
column on its own; what it adds up to is then read from it, and checked on rows.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpae.models.given_model import GivenModel, logit_of
from gpae.proofs.affine import Affine, by_linear_program
from gpae.proofs.certificate import Certificate, Prove
from gpae.proofs.forest import Forest
from gpae.proofs.trees import ForestOfFeatures, by_trees
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom
from gpae.table.schema import Schema

__all__ = ["provers_of"]

_LINEAR = {
    "LogisticRegression", "LogisticRegressionCV", "LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier",
    "Perceptron", "LinearDiscriminantAnalysis",
}  # fmt: skip
_COLUMN_BY_COLUMN = {
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "OneHotEncoder", "OrdinalEncoder",
    "SimpleImputer",
}  # fmt: skip
_ALIKE = 1e-4
"""How well a model's sum must be the logit of what it says, to be taken for that,"""
_CLEAR = 8.0
"""where that logit is not so large that a probability cannot tell it."""


def provers_of(model: Any, given: GivenModel, schema: Schema, values: Array, favourable: int) -> tuple[Prove, ...]:
    """The proofs that a model allows: of none, by a linear program, or by one of trees.

    ``values`` are rows in the user's units to check on; ``favourable`` is the position of the favourable class.
    """
    *before, last = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    if not all(_column_by_column(step) for step in before):
        return ()
    kind = type(last).__name__ if type(last).__module__.startswith("sklearn.") else ""
    # a support vector machine's own probabilities turn favourable elsewhere than its decision values
    if kind in _LINEAR or (kind == "SVC" and last.kernel == "linear" and given.speaks == "decision values"):
        sign = 1.0 if favourable == 1 else -1.0
        affine = Affine.probed(lambda v: sign * _asked(given, model.decision_function, v), schema, values)
        return () if affine is None else (partial(_linear, affine, _are_logits(affine.of(values), given(values))),)

    def columns(v: Array) -> NDArray[Any]:
        table = given.maker.table(v, given.names)
        for step in before:
            table = step.transform(table)
        return np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)

    try:
        forest = Forest.of(last, columns(values), favourable)
    except (TypeError, ValueError):  # columns that are no numbers
        return ()
    if forest is None:
        return ()
    trees = ForestOfFeatures.probed(forest, columns, schema, values)
    if trees is None or not _decides_alike(forest, trees.columns(values), given(values)):
        return ()
    return (partial(_by_trees, trees),)


def _linear(
    affine: Affine, are_logits: bool, person: Freedom, seconds: float, margin: float
) -> tuple[Certificate | None, Array | None]:
    # a sum that is no logit says where the boundary is, not how far a margin lies from it; what it cannot reach without
    # any margin, it cannot with one
    return by_linear_program(person, affine, margin if are_logits else 0.0, seconds)


def _by_trees(
    trees: ForestOfFeatures, person: Freedom, seconds: float, margin: float
) -> tuple[Certificate | None, Array | None]:
    return by_trees(person, trees, seconds, margin)


def _decides_alike(forest: Forest, columns: Array, scores: Array) -> bool:
    """Whether the sum of the trees says which rows the model favours."""
    above = forest.base + sum((tree(columns) for tree in forest.trees), np.zeros(len(columns))) - forest.needed
    clear = np.abs(above) > _ALIKE
    return bool(((above > 0) == (scores > 0.5))[clear].all())


def _are_logits(sums: Array, scores: Array) -> bool:
    """Whether sums are the logits of the scores that decide."""
    logits = logit_of(scores)
    clear = np.abs(logits) <= _CLEAR
    return bool(clear.any()) and bool(np.abs(sums - logits)[clear].max() <= _ALIKE)


def _asked(given: GivenModel, ask: Callable[[Any], Any], values: Array) -> Array:
    return np.asarray(ask(given.maker.table(values, given.names)), dtype=np.float64)


def _column_by_column(step: Any) -> bool:
    """Whether a transformer treats every column on its own."""
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return True
    if hasattr(step, "steps"):
        return all(_column_by_column(inner) for _, inner in step.steps)
    if hasattr(step, "transformers_"):
        return all(_column_by_column(inner) for _, inner, _ in step.transformers_)
    if getattr(step, "clip", False):  # beyond the training range it is no straight line
        return False
    if type(step).__name__ == "FunctionTransformer":
        return step.func is None
    return type(step).__name__ in _COLUMN_BY_COLUMN
