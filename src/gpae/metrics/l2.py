"""L2: how far the answer is, squared, as the paper prints it."""

import numpy as np

from gpae.arrays import Mask
from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.results import Counterfactuals

__all__ = ["L2"]


def _continuous(reference: Reference) -> Mask:
    return reference.layout.continuous


def _squared(answers: Counterfactuals, columns: Mask) -> Scores:
    return np.square((answers.counterfactual - answers.factual)[:, columns]).sum(axis=1)


L2 = METRICS.add("l2", Metric("L2", "lower", _continuous, _squared), paper_name="L2")
"""mean |x' - x|^2 over the columns that hold numbers."""
