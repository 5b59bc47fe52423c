"""MeanPairwise: the mean distance of two answers; the other reading of the paper's Diversity."""

from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.numerics.distances import mean_distance_to_others
from gpae.results import Counterfactuals

__all__ = ["MEAN_PAIRWISE"]


def _nothing(_: Reference) -> None:
    return None


def _whole(answers: Counterfactuals, _: None) -> Scores:
    return mean_distance_to_others(answers.counterfactual)


MEAN_PAIRWISE = METRICS.add(
    "mean_pairwise", Metric("MeanPairwise", "higher", _nothing, _whole), paper_name="MeanPairwise"
)
"""2 / (n (n - 1)) sum_{i < j} |x_i' - x_j'|, twice Diversity."""
