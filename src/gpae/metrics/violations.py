"""Violations: how many answers are rows that the person may not become."""

import numpy as np

from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.results import Counterfactuals

__all__ = ["VIOLATIONS"]


def _same(reference: Reference) -> Reference:
    return reference


def _broken(answers: Counterfactuals, reference: Reference) -> Scores:
    at = np.flatnonzero(answers.found)
    x, u = answers.factual[at], answers.counterfactual[at]
    scores = np.full(len(answers), np.nan)
    scores[at] = ~reference.layout.is_allowed(u, x, *reference.layout.box(x, reference.fixed))
    return scores


VIOLATIONS = METRICS.add("violations", Metric("Violations", "lower", _same, _broken), paper_name="Violations")
"""Share of the answers that leave the range, break a direction or a lock, or hold a value that is none."""
