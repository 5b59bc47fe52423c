"""Instability: how far apart the answers of two similar people are."""

import numpy as np

from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.numerics.distances import nearest_other
from gpae.results import Counterfactuals

__all__ = ["INSTABILITY"]


def _nothing(_: Reference) -> None:
    return None


def _ratio(answers: Counterfactuals, _: None) -> Scores:
    """A person whose neighbour has no answer, or who has none, is not counted."""
    neighbour, apart = nearest_other(answers.factual, answers.target)
    answers_apart = np.linalg.norm(answers.counterfactual - answers.counterfactual[neighbour], axis=1)
    return np.where(np.isfinite(apart), answers_apart / (1 + apart), np.nan)


INSTABILITY = METRICS.add("instability", Metric("Instability", "lower", _nothing, _ratio), paper_name="Instability")
"""mean |x_i' - x^_i'| / (1 + |x_i - x^_i|), x^_i the nearest other query with the same predicted class.

All queries with one target have the same predicted class, the other one; x^_i is the nearest of them, answered or not.
"""
