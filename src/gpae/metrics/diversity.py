"""Diversity: how much the answers differ from each other, by the paper's formula."""

from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.numerics.distances import mean_distance_to_others
from gpae.results import Counterfactuals

__all__ = ["DIVERSITY"]


def _nothing(_: Reference) -> None:
    return None


def _half(answers: Counterfactuals, _: None) -> Scores:
    return mean_distance_to_others(answers.counterfactual) / 2


DIVERSITY = METRICS.add("diversity", Metric("Diversity", "higher", _nothing, _half), paper_name="Diversity")
"""1 / (n (n - 1)) sum_{i < j} |x_i' - x_j'|: half the mean distance of two answers, since each pair is counted once."""
