"""IM1: does the answer look like the target class rather than like the person's own?"""

from dataclasses import replace

import numpy as np

from gpae.metric import METRICS, Metric, Reference, Scores
from gpae.models.class_autoencoders import ClassAutoencoders
from gpae.results import Counterfactuals

__all__ = ["IM1", "IM1_MEDIAN"]

_EPSILON = 1e-7


def _autoencoders(reference: Reference) -> ClassAutoencoders:
    return reference.once(
        "class_autoencoders", lambda: ClassAutoencoders.fit(reference.train, reference.labels, seed=reference.seed)
    )


def _ratio(answers: Counterfactuals, autoencoders: ClassAutoencoders) -> Scores:
    u = answers.counterfactual
    as_target, as_origin = (
        np.square(u - autoencoders.of_class(u, label)).sum(axis=1) for label in (answers.target, 1 - answers.target)
    )
    return as_target / (as_origin + _EPSILON)


IM1 = METRICS.add("im1", Metric("IM1", "lower", _autoencoders, _ratio), paper_name="IM1")
"""mean |x' - AE_t(x')|^2 / (|x' - AE_o(x')|^2 + e), of auto-encoders of the target and of the original class."""

IM1_MEDIAN = METRICS.add("im1_median", replace(IM1, name="IM1Median", summary=np.median), paper_name="IM1Median")
"""The median, which a few small denominators do not decide."""
