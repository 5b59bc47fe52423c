"""DiscriminativePower: whether the person and the answer, alone, tell the two classes apart around the person."""

from dataclasses import dataclass

import numpy as np

from gpae.arrays import Labels, Rows
from gpae.classifier import Classifier
from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.numerics.distances import NOWHERE, nearest_of_class
from gpae.results import Counterfactuals

__all__ = ["DISCRIMINATIVE_POWER"]

_NEIGHBOURS = 5
"""Of each class."""


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """The test rows, and what the classifier says of them and of any other row."""

    rows: Rows
    labels: Labels
    classifier: Classifier


def _pool(reference: Reference) -> _Pool:
    return _Pool(reference.test, _labels(reference.classifier, reference.test), reference.classifier)


def _labels(classifier: Classifier, X: Rows) -> Labels:
    return (classifier.predict_proba(X)[:, 1] > 0.5).astype(np.int64) if len(X) else np.zeros(0, dtype=np.int64)


def _accuracy(answers: Counterfactuals, pool: _Pool) -> Scores:
    at = np.flatnonzero(answers.found)
    x, u = answers.factual[at], answers.counterfactual[at]
    near = [nearest_of_class(x, pool.rows, pool.labels == label, _NEIGHBOURS) for label in (0, 1)]
    chosen = np.concatenate(near, axis=1)
    to_x, to_u = (np.linalg.norm(pool.rows[chosen] - one[:, None], axis=2) for one in (x, u))
    x_label, u_label = (_labels(pool.classifier, one)[:, None] for one in (x, u))
    right = np.where(to_x <= to_u, x_label, u_label) == pool.labels[chosen]
    there = chosen != NOWHERE
    scores = np.full(len(answers), np.nan)
    counted = there.sum(axis=1)
    scores[at[counted > 0]] = (right & there).sum(axis=1)[counted > 0] / counted[counted > 0]
    return scores


DISCRIMINATIVE_POWER = METRICS.add(
    "discriminative_power",
    Metric("DiscriminativePower", "higher", _pool, _accuracy),
    paper_name="DiscriminativePower",
)
"""Accuracy of the 1-nearest-neighbour rule of {x, x'} on the 5 test rows of each predicted class nearest to x."""
