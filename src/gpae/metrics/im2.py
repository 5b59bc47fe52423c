"""IM2: does the answer look the same to an auto-encoder of the target class and to one of all rows?"""

from dataclasses import replace

import numpy as np

from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.models.class_autoencoders import ClassAutoencoders
from gpae.results import Counterfactuals

__all__ = ["IM2", "IM2_MEDIAN"]

_EPSILON = 1e-7


def _autoencoders(reference: Reference) -> ClassAutoencoders:
    return reference.once(
        "class_autoencoders", lambda: ClassAutoencoders.fit(reference.train, reference.labels, seed=reference.seed)
    )


def _ratio(answers: Counterfactuals, autoencoders: ClassAutoencoders) -> Scores:
    u = answers.counterfactual
    apart = np.square(autoencoders.of_class(u, answers.target) - autoencoders.of_all(u)).sum(axis=1)
    return apart / (np.abs(u).sum(axis=1) + _EPSILON)


IM2 = METRICS.add("im2", Metric("IM2", "lower", _autoencoders, _ratio), paper_name="IM2")
"""mean |AE_t(x') - AE(x')|^2 / (|x'|_1 + e), of auto-encoders of the target class and of all rows."""

IM2_MEDIAN = METRICS.add("im2_median", replace(IM2, name="IM2Median", summary=np.median), paper_name="IM2Median")
