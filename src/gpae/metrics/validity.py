"""Validity: does the explained classifier put the answer in the target class?"""

import numpy as np

from gpae.classifier import Classifier
from gpae.metric import METRICS, Metric, Reference, Scores, in_class
from gpae.results import Counterfactuals

__all__ = ["VALIDITY"]


def _explained(reference: Reference) -> Classifier:
    return reference.classifier


def _valid(answers: Counterfactuals, classifier: Classifier) -> Scores:
    return in_class(classifier, answers.counterfactual, answers.target).astype(np.float64)


VALIDITY = METRICS.add("validity", Metric("Validity", "higher", _explained, _valid), paper_name="Validity")
"""Share of all queries, those without an answer included; on the boundary nothing is valid."""
