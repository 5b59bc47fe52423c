"""The contract of every metric: one number for each answer, and one for all of them with the rows that it is of.

A metric sees answers, never the method that gave them. The rows of the answers are the queries: who leaves some of them
out, such as those that not every method answered, names the others in ``rows``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import Labels, Mask, Rows
from gpae.classifier import Classifier
from gpae.registry import Registry
from gpae.results import Counterfactuals
from gpae.table.layout import Layout

__all__ = ["METRICS", "Metric", "Reference", "Score", "Scores", "in_class", "judged"]

METRICS: "Registry[Metric[Any]]" = Registry("metric")

P = TypeVar("P")
T = TypeVar("T")

Scores = NDArray[np.float64]
"""One number an answer; NaN where the metric says nothing about it."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What the answers of every method on one data set and seed are measured against.

    Parameters
    ----------
    train, labels
        Encoded training rows and their classes.
    test
        Encoded test rows of both classes, the queries among them.
    layout
        Of the encoded rows, with the features that the schema fixes.
    classifier
        The one that is explained, the same for all methods.
    fixed
        Features that the queries must keep (F) beside those of the schema.
    seed
        Of what is trained for the sake of measuring.
    made
        What :meth:`once` has made; hand it on to another reference of the same rows to make nothing twice.
    """

    train: Rows
    labels: Labels
    test: Rows
    layout: Layout
    classifier: Classifier
    fixed: Mask | None = None
    seed: int = 0
    made: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What several metrics need and is dear to make: made when first asked for."""
        if name not in self.made:
            self.made[name] = make()
        made: T = self.made[name]
        return made


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value, and the number of answers that it is of; NaN of none."""

    value: float
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Metric(Generic[P]):
    """One way to judge answers.

    Parameters
    ----------
    name
        As records and the paper write it.
    better
        Which way is good.
    prepare
        What has to be learnt from the reference, once for all methods.
    score
        One number an answer. A metric of a group, such as Diversity, gives each answer its part, so that their mean is
        the group's value.
    summary
        Of the numbers that are not NaN.
    """

    name: str
    better: Literal["higher", "lower"]
    prepare: Callable[[Reference], P]
    score: Callable[[Counterfactuals, P], Scores]
    summary: Callable[[Scores], Any] = np.mean

    def __call__(self, answers: Counterfactuals, prepared: P, rows: Mask | None = None) -> Score:
        """Judge each query's first plan; ``rows`` (one entry a query): only these."""
        scores = self.score(judged(answers, rows), prepared)
        said = scores[~np.isnan(scores)]
        return Score(float(self.summary(said)) if len(said) else float("nan"), len(said))


def judged(answers: Counterfactuals, rows: Mask | None = None) -> Counterfactuals:
    """The first plan of each query, of all of them or of those in ``rows``."""
    kept = answers.plan == 0
    if rows is not None:
        kept &= rows[answers.row]
    return Counterfactuals(
        row=answers.row[kept],
        plan=answers.plan[kept],
        factual=answers.factual[kept],
        counterfactual=answers.counterfactual[kept],
        target=answers.target[kept],
        found=answers.found[kept],
        status=answers.status[kept],
    )


def in_class(classifier: Classifier, X: Rows, label: Labels) -> Mask:
    """Which rows a classifier puts strictly on a class's side; a row of NaN is on neither."""
    known = ~np.isnan(X).any(axis=1)
    favourable = np.full(len(X), 0.5)
    if known.any():
        favourable[known] = classifier.predict_proba(X[known])[:, 1]
    return np.asarray(np.where(label == 1, favourable > 0.5, favourable < 0.5))
