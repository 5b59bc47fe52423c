"""ValiditySelf: does the classifier that the method itself explains put the answer in the target class?"""

import numpy as np

from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.results import Counterfactuals, Status

__all__ = ["VALIDITY_SELF"]


def _nothing(_: Reference) -> None:
    return None


def _found(answers: Counterfactuals, _: None) -> Scores:
    """``found`` is what that classifier said; whom it favours as they are had nothing to ask of it."""
    favoured = answers.status == Status.ALREADY_FAVOURABLE
    return np.where(favoured, np.nan, answers.found.astype(np.float64))


VALIDITY_SELF = METRICS.add(
    "validity_self", Metric("ValiditySelf", "higher", _nothing, _found), paper_name="ValiditySelf"
)
"""Share of the queries that the method's own classifier refuses; the same as Validity for a post-hoc method."""
