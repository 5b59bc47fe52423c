"""Found: how many queries have an answer."""

import numpy as np

from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.results import Counterfactuals

__all__ = ["FOUND"]


def _nothing(_: Reference) -> None:
    return None


def _found(answers: Counterfactuals, _: None) -> Scores:
    return answers.found.astype(np.float64)


FOUND = METRICS.add("found", Metric("Found", "higher", _nothing, _found), paper_name="Found")
"""Share of all queries; the other metrics, Validity apart, are of these."""
