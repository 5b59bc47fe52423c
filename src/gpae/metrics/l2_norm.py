"""L2Norm: how far the answer is, in the distance's own unit; the other reading of the paper's L2."""

import numpy as np

from gpae.arrays import Mask
from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.results import Counterfactuals

__all__ = ["L2_NORM"]


def _continuous(reference: Reference) -> Mask:
    return reference.layout.continuous


def _length(answers: Counterfactuals, columns: Mask) -> Scores:
    return np.asarray(np.linalg.norm((answers.counterfactual - answers.factual)[:, columns], axis=1))


L2_NORM = METRICS.add("l2_norm", Metric("L2Norm", "lower", _continuous, _length), paper_name="L2Norm")
"""mean |x' - x| over the columns that hold numbers."""
